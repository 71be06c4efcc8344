#!/usr/bin/env bash
# Makes a root file system with Postgres from Debian's packages: what the image
# of Postgres starts from where no registry is reachable. Needs mmdebstrap and
# the distribution's mirror; takes about 20 s.
#
#   root.sh OUTPUT.tar
set -euo pipefail

output=${1:?usage: root.sh OUTPUT.tar}
version=15
suite=bookworm

# The user has the number that it has in the official image. The package would
# make a database of its own.
prepare='echo "postgres:x:999:999::/var/lib/postgresql:/bin/bash" >>"$1/etc/passwd"
	&& echo "postgres:x:999:" >>"$1/etc/group"
	&& echo "postgres:*:19000:0:99999:7:::" >>"$1/etc/shadow"
	&& mkdir -p "$1/etc/postgresql-common/createcluster.d"
	&& echo "create_main_cluster = false" >"$1/etc/postgresql-common/createcluster.d/muster.conf"'
prepare=${prepare//$'\n'/ } # mmdebstrap takes a line
leave_out=()
for path in /usr/share/doc /usr/share/man /usr/share/info /usr/share/locale; do
	leave_out+=(--dpkgopt="path-exclude=$path/*")
done

echo "postgres: making a root file system from Debian $suite's packages"
SOURCE_DATE_EPOCH=0 mmdebstrap --quiet --variant=essential --include="postgresql-$version" \
	--essential-hook="$prepare" "${leave_out[@]}" "$suite" "$output.part.tar"
mv "$output.part.tar" "$output"
