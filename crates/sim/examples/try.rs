use std::path::Path;
use serde_json::Value;
fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let text = std::fs::read_to_string(&args[0]).unwrap();
    let base: toml::Value = toml::from_str(&text).unwrap();
    let base: Value = serde_json::to_value(base).unwrap();
    let cases: Vec<String> = args[1..].to_vec();
    let next = std::sync::atomic::AtomicUsize::new(0);
    let out = std::sync::Mutex::new(vec![String::new(); cases.len()]);
    let work = || loop {
        let i = next.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        if i >= cases.len() { break }
        let mut v = base.clone();
        for kv in cases[i].split(';').filter(|s| !s.is_empty()) {
            let (k, x) = kv.split_once('=').unwrap();
            let (t, k) = k.trim().split_once('.').unwrap();
            let x: Value = serde_json::from_str(x).unwrap_or(Value::String(x.to_string()));
            v[t][k] = x;
        }
        let e = match agewell_sim::AnyExperiment::from_value(v) { Ok(e)=>e, Err(e)=>{ out.lock().unwrap()[i]=format!("{e}"); continue } };
        let places = agewell_sim::Places { base: Path::new("."), catalogue: Path::new("devices") };
        match agewell_sim::run(&e, places, &mut |_| true) {
            Ok(o) => {
                let m = &o.document["metrics"];
                let f = |n: &str| m[n].as_f64().unwrap_or(f64::NAN);
                let mut s = String::new();
                let names = std::env::var("M").unwrap_or("overall_write_cost,new_data_cost,cleaner_cost,write_cost,victim_utilization,segments_cleaned,segments_plugged,segments_from_cache".into());
                for n in names.split(',') { s += &format!(" {n}={:.4}", f(n)); }
                if std::env::var("ALL").is_ok() { s += &m.to_string(); }
                out.lock().unwrap()[i] = s;
            }
            Err(e) => out.lock().unwrap()[i] = format!("{e:?}"),
        }
    };
    std::thread::scope(|s| { for _ in 0..2 { s.spawn(work); } });
    for (c, o) in cases.iter().zip(out.into_inner().unwrap()) { println!("{c:60} {o}"); }
}
