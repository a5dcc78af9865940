//! The Boa JavaScript interpreter: runs the script in its first argument, with the second as the global N.

use boa_engine::property::Attribute;
use boa_engine::{Context, Source, js_string};

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, script, rounds] = &arguments[..] else {
        eprintln!("usage: boa SCRIPT N");
        std::process::exit(2);
    };
    let script = std::fs::read(script).expect("the script can be read");
    let rounds: i32 = rounds.parse().expect("N is a number");
    let mut context = Context::default();
    context
        .register_global_property(js_string!("N"), rounds, Attribute::all())
        .expect("N is a new global");
    match context.eval(Source::from_bytes(&script)) {
        Ok(value) => println!("{}", value.display()),
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(1);
        }
    }
}
