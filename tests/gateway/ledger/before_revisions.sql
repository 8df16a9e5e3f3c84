BEGIN TRANSACTION;
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
	batch_size INTEGER NOT NULL, 
	PRIMARY KEY (tenant, call, day, version, price, ppm, rate)
);
INSERT INTO "call_line" VALUES('acme','a','2026-09-22','ver_1','cpu',1000000,47160000,'shop','hello',1000000000,'ok',2);
INSERT INTO "call_line" VALUES('acme','b','2026-09-22','ver_1','cpu',1000000,47160000,'shop','hello',333333333,'ok',2);
INSERT INTO "call_line" VALUES('acme','c','2026-09-22','ver_1','cpu',1000000,47160000,'shop','hello',5000000000,'',1);
INSERT INTO "call_line" VALUES('acme','c','2026-09-23','ver_1','cpu',1000000,47160000,'shop','hello',4000000000,'failed',1);
CREATE TABLE fold_result (
	result VARCHAR(16) NOT NULL, 
	events BIGINT NOT NULL, 
	PRIMARY KEY (result)
);
INSERT INTO "fold_result" VALUES('new',7);
INSERT INTO "fold_result" VALUES('repeated',2);
INSERT INTO "fold_result" VALUES('unpriced',1);
INSERT INTO "fold_result" VALUES('misfits',0);
CREATE TABLE folded (
	stream VARCHAR(64) NOT NULL, 
	seq BIGINT NOT NULL, 
	PRIMARY KEY (stream)
);
INSERT INTO "folded" VALUES('USAGE',42);
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
	day VARCHAR(10) NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "lease_line" VALUES('node-1.s0.1','n1','d0','s0',1000000,'cpu',47160000,'loading','acme','shop','hello','ver_1','c1',0,1000000000,1000000000,1790078401.0,'2026-09-22');
INSERT INTO "lease_line" VALUES('node-1.s0.2','n1','d0','s0',1000000,'cpu',47160000,'busy','acme','shop','hello','ver_1','c1',1000000000,2333333333,1333333333,1.79007840233333325383e+09,'2026-09-22');
INSERT INTO "lease_line" VALUES('node-1.s0.3','n1','d0','s0',1000000,'cpu',47160000,'idle','acme','shop','hello','ver_2','c1',3000000000,4000000000,1000000000,1790078404.0,'2026-09-22');
INSERT INTO "lease_line" VALUES('node-1.s0.4','n1','d0','s0',1000000,'cpu',47160000,'idle','rival','shop','hello','ver_1','c1',4000000000,5000000000,1000000000,1790078405.0,'2026-09-22');
INSERT INTO "lease_line" VALUES('node-1.s0.5','n1','d0','s0',1000000,'cpu',47160000,'free','','','','','c1',5000000000,6000000000,1000000000,1790078406.0,'2026-09-22');
INSERT INTO "lease_line" VALUES('node-1.s0.6','n1','d0','s0',1000000,'cpu',47160000,'busy','acme','shop','hello','ver_1','c1',6000000000,15000000000,9000000000,1790121604.0,'2026-09-23');
INSERT INTO "lease_line" VALUES('node-1.s0.7','n1','d0','s0',142857,'nobody-knows',0,'idle','acme','shop','hello','ver_1','c1',15000000000,16000000000,1000000000,1790078416.0,'2026-09-22');
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
INSERT INTO "usage_day" VALUES('2026-09-22','acme','shop','hello','ver_1','loading','cpu',1000000,47160000,1000000000,0);
INSERT INTO "usage_day" VALUES('2026-09-22','acme','shop','hello','ver_1','busy','cpu',1000000,47160000,6333333333,2);
INSERT INTO "usage_day" VALUES('2026-09-22','acme','shop','hello','ver_2','idle','cpu',1000000,47160000,1000000000,0);
INSERT INTO "usage_day" VALUES('2026-09-22','rival','shop','hello','ver_1','idle','cpu',1000000,47160000,1000000000,0);
INSERT INTO "usage_day" VALUES('2026-09-22','','','','','free','cpu',1000000,47160000,1000000000,0);
INSERT INTO "usage_day" VALUES('2026-09-23','acme','shop','hello','ver_1','busy','cpu',1000000,47160000,4000000000,1);
INSERT INTO "usage_day" VALUES('2026-09-22','acme','shop','hello','ver_1','idle','nobody-knows',142857,0,1000000000,0);
CREATE INDEX lease_line_device ON lease_line (node, device, t0);
CREATE INDEX lease_line_wall ON lease_line (wall);
CREATE INDEX call_line_day ON call_line (day);
COMMIT;
