package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// ErrOldPrimary is wrapped where a server is refused that was a primary until a
// standby of it was promoted: it takes writes as before, and knows nothing of what
// was written since.
var ErrOldPrimary = errors.New("the Postgres server is a primary that was replaced")

// errStandby refuses a server that is read-only.
var errStandby = errors.New("the Postgres server is a standby")

// Lineage is the history of writes that a server of Postgres is on.
type Lineage struct {
	// System is the same for a primary and its standbys, and for whatever was made of
	// a copy of its files.
	System string
	// Timeline is one more after each promotion; 0 is not known.
	Timeline int64
}

// String is what ParseLineage reads.
func (l Lineage) String() string { return fmt.Sprintf("%s/%d", l.System, l.Timeline) }

// ParseLineage reads what String has written.
func ParseLineage(text string) (l Lineage, err error) {
	system, timeline, _ := strings.Cut(text, "/")
	l = Lineage{System: system}
	if l.Timeline, err = strconv.ParseInt(timeline, 10, 64); err != nil || system == "" || l.Timeline < 1 {
		return Lineage{}, fmt.Errorf("lineage %q: want SYSTEM/TIMELINE", text)
	}
	return l, nil
}

// lineages are the latest timelines that are known, by system.
type lineages struct {
	mu      sync.Mutex
	latest  map[string]int64
	refused func(error) // nil for none
}

// heed notes that a timeline is, or was, written on.
func (l *lineages) heed(seen Lineage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if seen.Timeline > l.latest[seen.System] {
		l.latest[seen.System] = seen.Timeline
	}
}

func (l *lineages) latestOf(system string) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.latest[system]
}

// report passes a server that is refused on to OnOldPrimary.
func (l *lineages) report(refused error) {
	l.mu.Lock()
	callback := l.refused
	l.mu.Unlock()
	if callback != nil {
		callback(refused)
	}
}

// check returns ErrOldPrimary when a later timeline of the same system is known.
func (l *lineages) check(of Lineage) error {
	if latest := l.latestOf(of.System); of.Timeline != 0 && of.Timeline < latest {
		return fmt.Errorf("%w: it is on timeline %d of system %s, and timeline %d has been written on; keep it from clients until it follows the new primary",
			ErrOldPrimary, of.Timeline, of.System, latest)
	}
	return nil
}

// lineageOfServer is asked on each connection. A standby cannot name its present file, and
// is not asked for it. The name of a file of the write-ahead log begins with the timeline.
const lineageOfServer = `SELECT CASE WHEN pg_is_in_recovery() THEN '' ELSE pg_walfile_name(pg_current_wal_lsn()) END,
	(SELECT system_identifier::text FROM pg_control_system())`

// noLineage are the SQLSTATEs of servers without a lineage: no right, no such function, not
// supported. Some services that speak the protocol of Postgres are such.
var noLineage = []string{"42501", "42883", "0A000"}

const lineageKey = "muster lineage"

// validate takes the connection to a server that may be written to and was not
// replaced, and refuses any other, so that the next host of the URL is tried.
func (l *lineages) validate(ctx context.Context, conn *pgconn.PgConn) error {
	result := conn.ExecParams(ctx, lineageOfServer, nil, nil, nil, nil).Read()
	var refused *pgconn.PgError
	if errors.As(result.Err, &refused) && slices.Contains(noLineage, refused.Code) {
		return pgconn.ValidateConnectTargetSessionAttrsReadWrite(ctx, conn)
	}
	if result.Err != nil {
		return fmt.Errorf("read the timeline: %w", result.Err)
	}
	if len(result.Rows) != 1 || len(result.Rows[0]) != 2 {
		return fmt.Errorf("read the timeline: %d rows, want one with two columns", len(result.Rows))
	}
	file, system := string(result.Rows[0][0]), string(result.Rows[0][1])
	if file == "" {
		return errStandby
	}
	timeline, err := timelineOf(file)
	if err != nil {
		return err
	}
	of := Lineage{System: system, Timeline: timeline}
	if err := l.check(of); err != nil {
		err = fmt.Errorf("%s: %w", conn.Conn().RemoteAddr(), err)
		l.report(err)
		return err
	}
	l.heed(of)
	conn.CustomData()[lineageKey] = of
	return nil
}

// timelineOf reads the timeline from the name of a file of the write-ahead log: 24
// hexadecimal digits, of which the first eight are the timeline.
func timelineOf(file string) (int64, error) {
	if len(file) != 24 {
		return 0, fmt.Errorf("read the timeline of the write-ahead log file %q: want 24 hexadecimal digits", file)
	}
	timeline, err := strconv.ParseInt(file[:8], 16, 64)
	if err != nil || timeline < 1 {
		return 0, fmt.Errorf("read the timeline of the write-ahead log file %q: want 24 hexadecimal digits, and a timeline of at least 1", file)
	}
	return timeline, nil
}

// lineageOf is what validate found; zero when the server has none.
func lineageOf(conn *pgx.Conn) Lineage {
	of, _ := conn.PgConn().CustomData()[lineageKey].(Lineage)
	return of
}

// prepare has a connection closed whose server has been replaced since.
func (l *lineages) prepare(_ context.Context, conn *pgx.Conn) (bool, error) {
	return l.check(lineageOf(conn)) == nil, nil
}

// require has the connections of a configuration go to the primary only; what the
// URL says itself (target_session_attrs) holds, too.
func (l *lineages) require(config *pgconn.Config) {
	wanted := config.ValidateConnect
	config.ValidateConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		if wanted != nil {
			if err := wanted(ctx, conn); err != nil {
				return err
			}
		}
		return l.validate(ctx, conn)
	}
}

// Heed notes that a history was written on, as another queue-manager noted in NATS.
// Connections to servers that are behind it are given up when they are next used.
func (s *Store) Heed(other Lineage) { s.lineages.heed(other) }

// OnOldPrimary has refused called for each connection that is refused because its
// server was replaced.
func (s *Store) OnOldPrimary(refused func(error)) {
	s.lineages.mu.Lock()
	defer s.lineages.mu.Unlock()
	s.lineages.refused = refused
}

// Lineage is the history that the leader of the term writes on; zero when the server
// has none.
func (l *Leadership) Lineage() Lineage { return lineageOf(l.conn) }
