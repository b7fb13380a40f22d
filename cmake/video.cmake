# SPDX-License-Identifier: Apache-2.0
# libtendon_video.so: videos, and with them libav, for the processes that have
# any. Who runs with it LOADS tendon_video.

include(GNUInstallDirs)

# td_video_library(a.c b.c): of files under src/media/video/, and of copies of
# what they use, so that it needs nothing of the program that loads it.
function(td_video_library)
  list(TRANSFORM ARGN PREPEND ${PROJECT_SOURCE_DIR}/src/media/video/
    OUTPUT_VARIABLE sources)
  foreach(name base/err.c media/size.c media/codec.c media/jpeg.c)
    list(APPEND sources ${PROJECT_SOURCE_DIR}/src/${name})
  endforeach()
  add_library(tendon_video MODULE ${sources})
  target_link_libraries(tendon_video PRIVATE td_options
    turbojpeg avformat avcodec swscale avutil m)
  set_target_properties(tendon_video PROPERTIES C_VISIBILITY_PRESET hidden)
  td_ship(tendon_video)
  if(NOT TD_SANITIZE) # whose functions are the program's
    target_link_options(tendon_video PRIVATE -Wl,--no-undefined)
  endif()
endfunction()
