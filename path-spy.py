import subprocess, sys, tempfile, time
from pathlib import Path
from benchmarks.token_path import SOURCE, STREAMS, WARM_UP, _through_platform
from tests.system.support.platform import platform
out, tokens = sys.argv[1], int(sys.argv[2])
with tempfile.TemporaryDirectory() as folder, platform(Path(folder), "--blanks", "1") as running:
    app = Path(folder)/"app.py"; app.write_text(SOURCE); running.deploy(app)
    _through_platform(running, WARM_UP)
    time.sleep(1)
    ps=[subprocess.Popen(["/tmp/w/path-venv/bin/py-spy","record","-r","500","-d","8","-f","raw","-o",f"{out}.{name}.spy","-p",str(running.pids[name])],stdout=subprocess.DEVNULL,stderr=subprocess.DEVNULL) for name in ("gateway","agent")]
    time.sleep(0.5)
    seen, used = _through_platform(running, tokens)
    print({k: round(v,1) for k,v in used.items()})
    for p in ps: p.wait()
