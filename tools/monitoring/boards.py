"""The dashboards. Every expression is held against what a running platform shows."""

from __future__ import annotations

from tools.monitoring.panels import Board, Line, Panel
from tools.monitoring.service_levels import LEVELS, ratio

PER = "$__rate_interval"


def boards() -> tuple[Board, ...]:
    """All of them."""
    return (calls_board(), fleet_board(), money_board())


def calls_board() -> Board:
    """Is anything wrong for those who call?"""
    return Board(
        "pilotlight-calls",
        "Pilotlight: calls",
        "What callers see: service levels, traffic, latency by stage, queues and limits.",
        (
            ("Service levels", (
                *(_budget(level.name, level.objective) for level in LEVELS),
                Panel("Calls", "reqps", (Line(f"sum(rate(pilotlight_calls_total[{PER}]))"),), is_stat=True),
                Panel("Queued", "short", (Line("sum(pilotlight_queue_depth)"),), is_stat=True),
            )),
            ("Traffic", (
                Panel("Calls by result", "reqps", (
                    Line(f"sum by (outcome) (rate(pilotlight_calls_total[{PER}]))", "{{outcome}}"),
                )),
                Panel("Failures by code", "reqps", (
                    Line(f'sum by (code) (rate(pilotlight_calls_total{{outcome="error"}}[{PER}])) > 0', "{{code}}"),
                ), "Those of callers' own mistakes and limits are among them: service levels say what is ours."),
                Panel("HTTP by status", "reqps", (
                    Line(f"sum by (status) (rate(pilotlight_http_requests_total[{PER}]))", "{{status}}"),
                )),
            )),
            ("Latency", (
                Panel("Arrival to answer", "s", tuple(
                    Line(_quantile(part, "pilotlight_call_duration_seconds", "outcome"), _named(part, "{{outcome}}"))
                    for part in (0.5, 0.95, 0.99)
                )),
                Panel("Where the time goes (mean)", "s", (
                    Line(
                        f"sum by (stage) (rate(pilotlight_call_stage_seconds_sum[{PER}])) / on () group_left () "
                        f'sum(rate(pilotlight_calls_total{{outcome="ok"}}[{PER}]))', "{{stage}}",
                    ),
                ), "Of calls that succeeded, by stage."),
                Panel("Time to the first chunk", "s", tuple(
                    Line(_quantile(part, "pilotlight_time_to_first_chunk_seconds"), f"p{part * 100:g}")
                    for part in (0.5, 0.95)
                )),
                Panel("Starts that calls waited for", "s", (
                    Line(_quantile(0.5, "pilotlight_cold_start_seconds"), "p50"),
                    Line(_quantile(0.95, "pilotlight_cold_start_seconds"), "p95"),
                )),
                Panel("Calls that waited for a start", "reqps", (
                    Line(f"sum(rate(pilotlight_cold_start_seconds_count[{PER}]))"),
                )),
                Panel("Loops of processes, slowest hundredth", "s", (
                    Line(
                        "histogram_quantile(0.99, sum by (le, job, instance) "
                        f"(rate(pilotlight_loop_lag_seconds_bucket[{PER}])))", "{{job}} {{instance}}",
                    ),
                ), "How much later than due a process comes to what is next."),
            )),
            ("Queues and limits", (
                Panel("Queued and running", "short", (
                    Line("sum(pilotlight_queue_depth)", "queued"), Line("sum(pilotlight_calls_running)", "running"),
                )),
                Panel("Age of the oldest queued call", "s", (Line("max(pilotlight_queue_oldest_seconds)"),)),
                Panel("Slowdown by others", "short", (
                    Line("max by (class) (pilotlight_slowdown_max)", "{{class}}"),
                ), "How many times as long the worst flow takes as it would alone."),
                Panel("Open breakers", "short", (Line("sum by (of) (pilotlight_breakers_open)", "{{of}}"),)),
                Panel("Connections", "short", (Line("sum by (known) (pilotlight_connections)", "known: {{known}}"),)),
                Panel("Bytes of bodies held", "bytes", (
                    Line("sum(pilotlight_body_bytes)", "held"), Line("sum(pilotlight_body_bytes_limit)", "limit"),
                )),
            )),
        ),
    )  # fmt: skip


def fleet_board() -> Board:
    """What do nodes do, and what does the controller want?"""
    return Board(
        "pilotlight-fleet",
        "Pilotlight: fleet",
        "Nodes, containers, starts, engines, and what the controller wants.",
        (
            ("Capacity", (
                Panel("Nodes", "short", (Line("max(pilotlight_nodes)"),), is_stat=True),
                Panel("Leaders", "short", (Line("sum(pilotlight_controller_leads)"),),
                      "One controller leads: 1 is right.", is_stat=True),
                Panel("Versions without a place", "short", (
                    Line('max(pilotlight_controller_versions{state="short"})'),
                ), is_stat=True),
                Panel("Containers wanted and held", "short", (
                    Line("max by (state) (pilotlight_controller_containers)", "{{state}}"),
                )),
                Panel("Slices", "short", (Line("sum by (state) (pilotlight_agent_slices)", "{{state}}"),)),
                Panel("Containers by state", "short", (
                    Line("sum by (state) (pilotlight_agent_containers)", "{{state}}"),
                )),
            )),
            _gpu_row(),
            _dashboard_row(),
            ("Starts", (
                Panel("Time until ready", "s", (
                    Line(_quantile(0.5, "pilotlight_agent_start_seconds"), "p50"),
                    Line(_quantile(0.95, "pilotlight_agent_start_seconds"), "p95"),
                )),
                Panel("By step (mean)", "s", (
                    Line(
                        f"sum by (step) (rate(pilotlight_agent_start_step_seconds_sum[{PER}])) / "
                        f"sum by (step) (rate(pilotlight_agent_start_step_seconds_count[{PER}]))", "{{step}}",
                    ),
                )),
                Panel("Starts, and failed ones", "reqps", (
                    Line(f"sum(rate(pilotlight_agent_start_seconds_count[{PER}]))", "ready"),
                    Line(f"sum(rate(pilotlight_agent_failed_starts_total[{PER}]))", "failed"),
                    Line(f"sum(rate(pilotlight_agent_failed_checks_total[{PER}]))", "taken out by a check"),
                )),
                Panel("Blanks", "short", (
                    Line("sum(pilotlight_agent_blanks)", "ready"),
                    Line("sum(pilotlight_agent_blanks_missing)", "missing"),
                )),
                Panel("Memory of what is warm", "bytes", (
                    Line("sum by (state) (pilotlight_agent_warm_memory_bytes)", "{{state}}"),
                )),
                Panel("Commands of the controller", "reqps", (
                    Line(f"sum by (command) (rate(pilotlight_controller_commands_total[{PER}]))", "{{command}}"),
                )),
            )),
            ("Engines", (
                Panel("Tokens", "short", (
                    Line(f"sum by (kind) (rate(pilotlight_agent_engine_tokens_total[{PER}]))", "{{kind}}"),
                ), "In a second. `stored` were found in the prefix cache."),
                Panel("Calls in engines", "short", (
                    Line("sum by (state) (pilotlight_agent_engine_calls)", "{{state}}"),
                )),
                Panel("Keys and values, fullest engine", "percentunit", (
                    Line("max(pilotlight_agent_engine_kv_used_ratio)"),
                ), most=1.0),
                Panel("First tokens and gaps, slowest engine (p95)", "s", (
                    Line("max(pilotlight_agent_engine_time_to_first_token_seconds)", "first token"),
                    Line("max(pilotlight_agent_engine_inter_token_seconds)", "gap"),
                )),
            )),
            ("Decisions", (
                Panel("Passes", "s", (
                    Line(_quantile(0.99, "pilotlight_controller_pass_seconds", "versions"), "p99 {{versions}}"),
                )),
                Panel("Passes that failed", "reqps", (
                    Line(f"sum(rate(pilotlight_controller_failed_passes_total[{PER}]))"),
                )),
                Panel("Refused for want of room or time", "reqps", (
                    Line(f"max(rate(pilotlight_controller_refused_calls_total[{PER}]))", "at arrival"),
                    Line(f"max(rate(pilotlight_controller_late_calls_total[{PER}]))", "in the queue"),
                )),
            )),
        ),
    )  # fmt: skip


def money_board() -> Board:
    """Is what is stored safe, and does the bill add up?"""
    return Board(
        "pilotlight-duties",
        "Pilotlight: stored work and money",
        "Jobs, batches, webhooks, the fold of usage and the bus.",
        (
            ("Stored work", (
                Panel("Duties without a holder", "short", (
                    Line("count(max by (duty) (pilotlight_duty_holds) < 1) or vector(0)"),
                ), is_stat=True),
                Panel("Jobs", "short", (Line("sum by (state) (pilotlight_job_records)", "{{state}}"),)),
                Panel("Longest waiting job", "s", (Line("max(pilotlight_job_oldest_seconds)"),)),
                Panel("Batches, and items left", "short", (
                    Line("sum by (state) (pilotlight_batches)", "{{state}}"),
                    Line("sum(pilotlight_batch_items_left)", "items left"),
                )),
                Panel("Deliveries of webhooks", "short", (
                    Line("sum by (state) (pilotlight_webhook_deliveries)", "{{state}}"),
                )),
            )),
            ("Usage", (
                Panel("Folded", "reqps", (
                    Line(f"sum by (result) (rate(pilotlight_usage_events_total[{PER}]))", "{{result}}"),
                )),
                Panel("Behind", "s", (Line("max(pilotlight_usage_behind_seconds)"),),
                      "How long what is folded now has been stored on the bus."),
                Panel("Stream of usage", "percentunit", (Line("max(pilotlight_usage_stream_filled)"),), most=1.0),
                Panel("Waits on nodes", "bytes", (
                    Line("sum(pilotlight_agent_usage_unacknowledged_bytes)", "not stored by the bus"),
                )),
                Panel("Not written by nodes' disks", "short", (Line("sum(pilotlight_agent_usage_unwritten_records)"),)),
                Panel("Unread", "short", (Line("max(pilotlight_usage_unread)"),)),
            )),
            ("Bus", (
                Panel("Processes with the bus", "short", (Line("sum(pilotlight_bus_connected)"),)),
            )),
        ),
    )  # fmt: skip


def _gpu_row() -> tuple[str, tuple[Panel, ...]]:
    return ("GPUs", (
        Panel("Busy", "percentunit", (
            Line("avg(pilotlight_agent_gpu_busy_ratio)", "mean"),
            Line("max(pilotlight_agent_gpu_busy_ratio)", "most"),
        ), "Of the time, as the driver tells: GPUs, and MIG instances from Hopper on. Not of GPUs in software.",
              most=1.0),
        Panel("Memory in use", "percentunit", (
            Line("sum(pilotlight_agent_gpu_memory_used_bytes) / sum(pilotlight_agent_gpu_memory_bytes)"),
        ), most=1.0),
    ))  # fmt: skip


def _dashboard_row() -> tuple[str, tuple[Panel, ...]]:
    return ("The dashboard", (
        Panel("Who looks", "short", (
            Line("sum(pilotlight_dashboard_viewers)", "sessions"),
            Line("sum(pilotlight_dashboard_streams)", "streams of changes"),
        )),
        Panel("From the request of a page to the whole of it", "s", tuple(
            Line(_quantile(part, "pilotlight_dashboard_page_seconds"), f"p{part * 100:g}") for part in (0.5, 0.95)
        )),
        Panel("Requests of browsers by status", "reqps", (
            Line(f"sum by (status) (rate(pilotlight_dashboard_requests_total[{PER}]))", "{{status}}"),
        )),
        Panel("What it asked gateways", "reqps", (
            Line(f"sum by (outcome) (rate(pilotlight_dashboard_asked_total[{PER}]))", "{{outcome}}"),
        ), "`refused` is the API's word to a viewer, `failed` a gateway's fault, `unanswered` nobody's word at all."),
    ))  # fmt: skip


def _budget(level: str, objective: float) -> Panel:
    left = f'1 - {ratio("3d")}{{slo="{level}"}} / {1.0 - objective:.6g}'
    return Panel(
        f"Budget left: {level}", "percentunit", (Line(left),),
        f"Of the last three days: {objective * 100:g} % of calls are to be good.", is_stat=True,
    )  # fmt: skip


def _named(part: float, series: str) -> str:
    return f"p{part * 100:g} {series}"


def _quantile(part: float, family: str, *by: str) -> str:
    return f"histogram_quantile({part:g}, sum by ({', '.join(('le', *by))}) (rate({family}_bucket[{PER}])))"
