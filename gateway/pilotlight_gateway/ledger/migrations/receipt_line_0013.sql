CREATE VIEW receipt_line AS
SELECT terms.tenant, receipt.call, terms.day, terms.version, terms.price, terms.ppm, terms.rate,
    terms.app, terms.function, receipt.ns, receipt.outcome, receipt.batch_size, terms.key_id,
    CASE WHEN receipt.tags != '' THEN receipt.tags ELSE terms.tags END AS tags, receipt.fault, receipt.units, terms.memory, terms.discount
FROM call_receipt AS receipt JOIN receipt_terms AS terms ON receipt.terms = terms.id
UNION ALL
SELECT terms.tenant, receipt.call, terms.day, terms.version, 'cpu_core', terms.core_ppm, terms.core_rate,
    terms.app, terms.function, receipt.ns, '', receipt.batch_size, terms.key_id,
    CASE WHEN receipt.tags != '' THEN receipt.tags ELSE terms.tags END, '', '', 0, terms.discount
FROM call_receipt AS receipt JOIN receipt_terms AS terms ON receipt.terms = terms.id
WHERE terms.core_ppm > 0
UNION ALL
SELECT terms.tenant, receipt.call, terms.day, terms.version, 'memory_gib', terms.gib_ppm, terms.gib_rate,
    terms.app, terms.function, receipt.ns, '', receipt.batch_size, terms.key_id,
    CASE WHEN receipt.tags != '' THEN receipt.tags ELSE terms.tags END, '', '', 0, terms.discount
FROM call_receipt AS receipt JOIN receipt_terms AS terms ON receipt.terms = terms.id
WHERE terms.gib_ppm > 0
UNION ALL
SELECT tenant, call, day, version, price, ppm, rate, app, function, ns, outcome, batch_size, key_id, tags, fault,
    units, 0, 0
FROM call_line
