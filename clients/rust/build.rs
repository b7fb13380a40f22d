// SPDX-License-Identifier: Apache-2.0
//! Where libtendon is: in `TENDON_LIB_DIR`, or where pkg-config says.

use std::{env, process::Command};

fn pkg_config() -> Option<String> {
    let output = Command::new("pkg-config").args(["--variable=libdir", "tendon"]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let folder = text.trim();
    (output.status.success() && !folder.is_empty()).then(|| folder.to_string())
}

fn main() {
    println!("cargo:rerun-if-env-changed=TENDON_LIB_DIR");
    if let Some(folder) = env::var("TENDON_LIB_DIR").ok().or_else(pkg_config) {
        println!("cargo:rustc-link-search=native={folder}");
    }
    println!("cargo:rustc-link-lib=dylib=tendon");
}
