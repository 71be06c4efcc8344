package store

import (
	"context"
	"net"
	"slices"
)

// Unsafe returns in what this login, or the connection, has more rights or less
// protection than the service needs. It is for a warning: a trial may do without.
func (s *Store) Unsafe(ctx context.Context) []string {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return nil // the first transaction will report what is wrong
	}
	defer conn.Release()
	var superuser, owner, encrypted bool
	err = conn.QueryRow(ctx, `
		SELECT r.rolsuper, pg_has_role(current_user, c.relowner, 'MEMBER'),
			coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), false)
		FROM pg_roles r, pg_class c WHERE r.rolname = current_user AND c.oid = to_regclass('leader')`).Scan(&superuser, &owner, &encrypted)
	if err != nil {
		return nil
	}
	var notes []string
	switch {
	case superuser:
		notes = append(notes, "the login in Postgres is a superuser; make one that is a member of muster_queue_manager and nothing else")
	case owner:
		notes = append(notes, "the login in Postgres owns the schema; make one that is a member of muster_queue_manager and nothing else")
	}
	for _, host := range s.unencrypted(encrypted) {
		notes = append(notes, "the connection to Postgres at "+host+" is not encrypted, or need not be; put sslmode=verify-full and sslrootcert into the database URL")
	}
	if lineageOf(conn.Conn()).Timeline == 0 {
		notes = append(notes, "the Postgres server does not show its timeline (pg_control_system, pg_walfile_name), so a replaced primary that comes back is not recognized")
	}
	return notes
}

// unencrypted lists the hosts of the URL on other machines to which connections are
// in the clear. Where the server may choose (sslmode prefer, allow) the present one
// has chosen; what another one will do after a failover is not known.
func (s *Store) unencrypted(present bool) (hosts []string) {
	config := s.pool.Config().ConnConfig
	several := false
	note := func(host string, unencrypted bool) {
		several = several || host != config.Host
		if unencrypted && !local(host) && !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	note(config.Host, config.TLSConfig == nil)
	for _, other := range config.Fallbacks {
		note(other.Host, other.TLSConfig == nil)
	}
	if present && !several {
		return nil
	}
	return hosts
}

// local reports whether a host of a database URL is this machine: loopback, or
// the directory of a socket.
func local(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || len(host) > 0 && host[0] == '/' || ip != nil && ip.IsLoopback()
}
