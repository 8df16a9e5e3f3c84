BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0007');
CREATE TABLE bound_container (
	container VARCHAR(128) NOT NULL, 
	node VARCHAR(63) NOT NULL, 
	tenant VARCHAR(63) NOT NULL, 
	app VARCHAR(63) NOT NULL, 
	function VARCHAR(63) NOT NULL, 
	version VARCHAR(63) NOT NULL, 
	slice VARCHAR(512) NOT NULL, 
	ppm INTEGER NOT NULL, 
	price VARCHAR(63) NOT NULL, 
	bound_at FLOAT NOT NULL, 
	ended_at FLOAT, 
	ns BIGINT NOT NULL, core_ppm BIGINT DEFAULT '0' NOT NULL, gib_ppm BIGINT DEFAULT '0' NOT NULL, 
	PRIMARY KEY (container)
);
CREATE TABLE call_line (
	tenant VARCHAR(63) NOT NULL, 
	call VARCHAR(64) NOT NULL, 
	day VARCHAR(10) NOT NULL, 
	version VARCHAR(63) NOT NULL, 
	price VARCHAR(63) NOT NULL, 
	ppm INTEGER NOT NULL, 
	rate BIGINT NOT NULL, 
	app VARCHAR(63) NOT NULL, 
	function VARCHAR(63) NOT NULL, 
	ns BIGINT NOT NULL, 
	outcome VARCHAR(16) NOT NULL, 
	batch_size INTEGER NOT NULL, key_id VARCHAR(64), tags TEXT, fault VARCHAR(16), units TEXT, 
	PRIMARY KEY (tenant, call, day, version, price, ppm, rate)
);
INSERT INTO "call_line" VALUES('acme','a','2026-09-22','ver_1','cpu_core',2000000,47160000,'shop','hello',3,'',4,'key_1','{"stage":"test","team":"search"}','','');
INSERT INTO "call_line" VALUES('acme','a','2026-09-22','ver_1','memory_gib',4000000,7992000,'shop','hello',3,'',4,'key_1','{"stage":"test","team":"search"}','','');
INSERT INTO "call_line" VALUES('acme','a','2026-09-22','ver_1','cpu',1000000,47160000,'shop','hello',3,'raised',4,'key_1','{"stage":"test","team":"search"}','tenant','{"prompt_tokens":12}');
INSERT INTO "call_line" VALUES('acme','b','2026-09-22','ver_1','cpu_core',2000000,47160000,'shop','hello',2,'',1,'key_1','{"team":"search"}','','');
INSERT INTO "call_line" VALUES('acme','b','2026-09-22','ver_1','memory_gib',4000000,7992000,'shop','hello',2,'',1,'key_1','{"team":"search"}','','');
INSERT INTO "call_line" VALUES('acme','b','2026-09-22','ver_1','cpu',1000000,47160000,'shop','hello',2,'',1,'key_1','{"team":"search"}','','');
INSERT INTO "call_line" VALUES('rival','c','2026-09-22','ver_1','cpu_core',2000000,47160000,'shop','hello',1,'',1,'','','','');
INSERT INTO "call_line" VALUES('rival','c','2026-09-22','ver_1','memory_gib',4000000,7992000,'shop','hello',1,'',1,'','','','');
INSERT INTO "call_line" VALUES('rival','c','2026-09-22','ver_1','cpu',1000000,47160000,'shop','hello',1,'ok',1,'','','none','');
INSERT INTO "call_line" VALUES('acme','d','2026-09-21','ver_1','cpu_core',2000000,47160000,'shop','hello',1000000000,'',1,'','','','');
INSERT INTO "call_line" VALUES('acme','d','2026-09-21','ver_1','memory_gib',4000000,7992000,'shop','hello',1000000000,'',1,'','','','');
INSERT INTO "call_line" VALUES('acme','d','2026-09-21','ver_1','cpu',1000000,47160000,'shop','hello',1000000000,'',1,'','','','');
INSERT INTO "call_line" VALUES('acme','d','2026-09-22','ver_1','cpu_core',2000000,47160000,'shop','hello',1000000000,'',1,'','','','');
INSERT INTO "call_line" VALUES('acme','d','2026-09-22','ver_1','memory_gib',4000000,7992000,'shop','hello',1000000000,'',1,'','','','');
INSERT INTO "call_line" VALUES('acme','d','2026-09-22','ver_1','cpu',1000000,47160000,'shop','hello',1000000000,'ok',1,'','','','');
INSERT INTO "call_line" VALUES('acme','e','2026-09-22','ver_1','cpu',1000000,47160000,'shop','hello',7,'ok',1,'','','','');
CREATE TABLE fold_result (
	result VARCHAR(16) NOT NULL, 
	events BIGINT NOT NULL, 
	PRIMARY KEY (result)
);
INSERT INTO "fold_result" VALUES('new',4);
INSERT INTO "fold_result" VALUES('repeated',0);
INSERT INTO "fold_result" VALUES('unpriced',0);
INSERT INTO "fold_result" VALUES('quarantined',0);
CREATE TABLE folded (
	stream VARCHAR(64) NOT NULL, 
	seq BIGINT NOT NULL, 
	PRIMARY KEY (stream)
);
INSERT INTO "folded" VALUES('USAGE',5);
CREATE TABLE known_device (
	node VARCHAR(63) NOT NULL, 
	device VARCHAR(128) NOT NULL, 
	since FLOAT NOT NULL, 
	ns BIGINT NOT NULL, 
	PRIMARY KEY (node, device)
);
CREATE TABLE lease_line (
	id VARCHAR(255) NOT NULL, 
	node VARCHAR(63) NOT NULL, 
	device VARCHAR(128) NOT NULL, 
	slice VARCHAR(128) NOT NULL, 
	ppm INTEGER NOT NULL, 
	price VARCHAR(63) NOT NULL, 
	rate BIGINT NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	tenant VARCHAR(63) NOT NULL, 
	app VARCHAR(63) NOT NULL, 
	function VARCHAR(63) NOT NULL, 
	version VARCHAR(63) NOT NULL, 
	container VARCHAR(128) NOT NULL, 
	t0 BIGINT NOT NULL, 
	t1 BIGINT NOT NULL, 
	ns BIGINT NOT NULL, 
	wall FLOAT NOT NULL, 
	day VARCHAR(10) NOT NULL, wall_ns BIGINT, purpose VARCHAR(16), used BOOLEAN, memory BIGINT, region VARCHAR(63), zone VARCHAR(63), purchase VARCHAR(16), core_ppm BIGINT, core_rate BIGINT, gib_ppm BIGINT, gib_rate BIGINT, 
	PRIMARY KEY (id)
);
INSERT INTO "lease_line" VALUES('node-1.s0.1','n1','d0','s0',1000000,'cpu',47160000,'busy','acme','shop','hello','ver_1','c1',0,6,6,1790035200.0,'2026-09-22',1790035200000000006,'call',0,0,'','','',2000000,47160000,4000000,7992000);
INSERT INTO "lease_line" VALUES('node-1.s0.2','n1','d0','s0',1000000,'cpu',47160000,'idle','acme','shop','hello','ver_1','c1',6,9,3,1790035200.0,'2026-09-22',1790035200000000009,'call',0,0,'','','',2000000,47160000,4000000,7992000);
INSERT INTO "lease_line" VALUES('node-1.s0.3','n1','d0','s0',1000000,'cpu',47160000,'busy','acme','shop','hello','ver_1','c1',9,2000000009,2000000000,1790035201.0,'2026-09-22',1790035201000000000,'',NULL,0,'','','',2000000,47160000,4000000,7992000);
INSERT INTO "lease_line" VALUES('node-1.s0.4','n1','d0','s0',1000000,'cpu',47160000,'busy','acme','shop','hello','ver_1','c1',2000000009,2000000016,7,1790035201.0,'2026-09-22',1790035201000000000,'',NULL,0,'','','',0,0,0,0);
CREATE TABLE ledger_identity (
	id VARCHAR(63) NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "ledger_identity" VALUES('13u7wswvp3obeo5gup4u');
CREATE TABLE quarantine_count (
	node VARCHAR(63) NOT NULL, 
	reason VARCHAR(16) NOT NULL, 
	events BIGINT NOT NULL, 
	PRIMARY KEY (node, reason)
);
CREATE TABLE quarantined_usage (
	id INTEGER NOT NULL, 
	seq BIGINT NOT NULL, 
	at FLOAT NOT NULL, 
	node VARCHAR(63) NOT NULL, 
	reason VARCHAR(16) NOT NULL, 
	text TEXT NOT NULL, 
	PRIMARY KEY (id)
);
CREATE TABLE unread_usage (
	id INTEGER NOT NULL, 
	seq BIGINT NOT NULL, 
	at FLOAT NOT NULL, 
	node VARCHAR(63) NOT NULL, 
	subject TEXT NOT NULL, 
	data BLOB NOT NULL, 
	bytes BIGINT NOT NULL, 
	why TEXT NOT NULL, 
	PRIMARY KEY (id)
);
CREATE TABLE usage_day (
	day VARCHAR(10) NOT NULL, 
	tenant VARCHAR(63) NOT NULL, 
	app VARCHAR(63) NOT NULL, 
	function VARCHAR(63) NOT NULL, 
	version VARCHAR(63) NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	price VARCHAR(63) NOT NULL, 
	ppm INTEGER NOT NULL, 
	rate BIGINT NOT NULL, 
	ns BIGINT NOT NULL, 
	calls BIGINT NOT NULL, 
	PRIMARY KEY (day, tenant, app, function, version, state, price, ppm, rate)
);
INSERT INTO "usage_day" VALUES('2026-09-22','acme','shop','hello','ver_1','busy','cpu_core',2000000,47160000,1000000005,0);
INSERT INTO "usage_day" VALUES('2026-09-22','acme','shop','hello','ver_1','busy','memory_gib',4000000,7992000,1000000005,0);
INSERT INTO "usage_day" VALUES('2026-09-22','acme','shop','hello','ver_1','busy','cpu',1000000,47160000,1000000012,3);
INSERT INTO "usage_day" VALUES('2026-09-22','rival','shop','hello','ver_1','busy','cpu_core',2000000,47160000,1,0);
INSERT INTO "usage_day" VALUES('2026-09-22','rival','shop','hello','ver_1','busy','memory_gib',4000000,7992000,1,0);
INSERT INTO "usage_day" VALUES('2026-09-22','rival','shop','hello','ver_1','busy','cpu',1000000,47160000,1,1);
INSERT INTO "usage_day" VALUES('2026-09-22','acme','shop','hello','ver_1','idle','cpu',1000000,47160000,3,0);
INSERT INTO "usage_day" VALUES('2026-09-22','acme','shop','hello','ver_1','idle','cpu_core',2000000,47160000,3,0);
INSERT INTO "usage_day" VALUES('2026-09-22','acme','shop','hello','ver_1','idle','memory_gib',4000000,7992000,3,0);
INSERT INTO "usage_day" VALUES('2026-09-21','acme','shop','hello','ver_1','busy','cpu_core',2000000,47160000,1000000000,0);
INSERT INTO "usage_day" VALUES('2026-09-21','acme','shop','hello','ver_1','busy','memory_gib',4000000,7992000,1000000000,0);
INSERT INTO "usage_day" VALUES('2026-09-21','acme','shop','hello','ver_1','busy','cpu',1000000,47160000,1000000000,0);
CREATE TABLE version_tags (
	tenant VARCHAR(63) NOT NULL, 
	version VARCHAR(63) NOT NULL, 
	tags TEXT NOT NULL, 
	PRIMARY KEY (tenant, version)
);
CREATE INDEX lease_line_device ON lease_line (node, device, t0);
CREATE INDEX lease_line_wall ON lease_line (wall);
CREATE INDEX call_line_day ON call_line (day);
CREATE INDEX bound_container_ended ON bound_container (ended_at);
CREATE INDEX quarantined_usage_node ON quarantined_usage (node, id);
CREATE INDEX unread_usage_node ON unread_usage (node);
COMMIT;
