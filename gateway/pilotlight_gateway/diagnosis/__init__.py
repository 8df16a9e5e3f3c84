"""What bounds a function: facts of a window, and a procedure over them that names the bottleneck. Pure.

`diagnosis_window.py` has the facts, `operational_laws.py` asks whether they can be true together, `bottlenecks.py` runs
the procedure. Each cause is a function in `*_causes.py`: the constraint that must bind, the change that its action
would make to the calls that were seen, and what will be different if it is right. `function_diagnoses.py` gathers the
facts, which `window_facts.py` puts in order.

Who may import it: `http` and what composes the gateway.
"""
