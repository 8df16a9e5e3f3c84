# The ledger: what everybody owes. Its password is made by AWS, in Secrets Manager, and replaced there.
resource "aws_db_subnet_group" "ledger" {
  name       = "${var.name}-ledger"
  subnet_ids = aws_subnet.database[*].id
}

resource "aws_db_parameter_group" "ledger" {
  name_prefix = "${var.name}-ledger-"
  family      = "postgres17"

  parameter {
    name  = "rds.force_ssl"
    value = "1"
  }

  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_db_instance" "ledger" {
  identifier                    = "${var.name}-ledger"
  engine                        = "postgres"
  engine_version                = "17"
  instance_class                = var.database.instance_class
  allocated_storage             = var.database.storage_gib
  max_allocated_storage         = var.database.storage_gib * 4
  storage_type                  = "gp3"
  storage_encrypted             = true
  kms_key_id                    = aws_kms_key.rest.arn
  db_name                       = "pilotlight"
  username                      = "pilotlight"
  manage_master_user_password   = true
  master_user_secret_kms_key_id = aws_kms_key.rest.key_id
  multi_az                      = true
  publicly_accessible           = false
  db_subnet_group_name          = aws_db_subnet_group.ledger.name
  parameter_group_name          = aws_db_parameter_group.ledger.name
  vpc_security_group_ids        = [aws_security_group.database.id]
  backup_retention_period       = var.database.backup_days
  copy_tags_to_snapshot         = true
  auto_minor_version_upgrade    = true
  deletion_protection           = var.keep
  skip_final_snapshot           = !var.keep
  final_snapshot_identifier     = "${var.name}-ledger-last"
}
