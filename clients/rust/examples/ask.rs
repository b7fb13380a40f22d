// SPDX-License-Identifier: Apache-2.0
use std::time::Duration;
use tendon::{Connection, ModelSettings};

fn main() -> Result<(), tendon::Error> {
    let connection = Connection::new("", "planner-1", "")?;
    let model = connection.model("pi0", &ModelSettings::default())?;
    let state = [0.0f32; 6];
    model.observe().urgency(0.8).tensor_f32("state", &state, &[6]).send()?;
    if let Some(result) = model.get_result(Duration::from_secs(5))? {
        println!("{} actions", result.actions()?.shape()[0]);
    }
    Ok(())
}
