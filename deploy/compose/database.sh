#!/bin/bash
# Run once, by the entry point of Postgres' image, when the local stack's database
# is made: the roles, encryption, and who may come from where. The superuser has no
# way in over the network; `docker compose exec postgres psql -U postgres` is one.
set -euo pipefail

data=$(psql --no-psqlrc -v ON_ERROR_STOP=1 -U "$POSTGRES_USER" -d "$POSTGRES_DB" -At -c 'SHOW data_directory')
install -m 0600 /run/secrets/postgres-key "$data/server.key"
install -m 0600 /run/secrets/postgres-certificate "$data/server.crt"

psql --no-psqlrc -v ON_ERROR_STOP=1 -U "$POSTGRES_USER" -d "$POSTGRES_DB" \
	-v owner="$(</run/secrets/muster_owner-password)" -v service="$(</run/secrets/queue_manager-password)" <<-'SQL'
	CREATE ROLE muster_queue_manager NOLOGIN;
	CREATE ROLE muster_reader NOLOGIN;
	CREATE ROLE muster_owner LOGIN PASSWORD :'owner';
	CREATE ROLE queue_manager LOGIN PASSWORD :'service' IN ROLE muster_queue_manager;
	ALTER DATABASE muster OWNER TO muster_owner;
	REVOKE ALL ON DATABASE muster FROM PUBLIC;
	GRANT CONNECT ON DATABASE muster TO muster_queue_manager, muster_reader;
	ALTER SYSTEM SET ssl = on;
	ALTER SYSTEM SET ssl_min_protocol_version = 'TLSv1.2';
SQL

# Written last: what the scripts of the image do after it needs no password yet.
cat >"$data/pg_hba.conf" <<-HBA
	local   all all               peer
	hostssl all $POSTGRES_USER all reject
	hostssl all all all           scram-sha-256
HBA
