package store_test

import (
	"errors"
	"strings"
	"testing"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/local/postgres"
	"muster.dev/muster/pkg/testkit/pgtest"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// pair is a primary of Postgres and a standby of it, with the schema, and URLs as the
// service has them: of each alone, and of both with the primary first.
type pair struct {
	primary, standby               *postgres.Server
	ofPrimary, ofStandby, ofEither string
}

func newPair(t *testing.T) pair {
	t.Helper()
	primary := pgtest.Local(t, postgres.Options{})
	p := pair{primary: primary}
	_, err := store.Migrate(t.Context(), primary.URL())
	if err != nil {
		t.Fatal(err)
	}
	if p.ofPrimary, _, err = postgres.Login(t.Context(), primary.URL(), "muster_queue_manager"); err != nil {
		t.Fatal(err)
	}
	if p.standby, err = primary.Standby(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.standby.Stop)
	if p.ofEither, err = postgres.AnyOf(p.ofPrimary, p.standby); err != nil {
		t.Fatal(err)
	}
	// The URL of both without the host of the primary.
	credentials, hosts, _ := strings.Cut(p.ofEither, "@")
	_, others, _ := strings.Cut(hosts, ",")
	p.ofStandby = credentials + "@" + strings.ReplaceAll(others, "target_session_attrs=read-write", "")
	return p
}

func (p pair) open(t *testing.T, url string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), url, store.DefaultTimeouts())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// A primary that comes back after a standby was promoted takes writes as before. Who
// knows of the promotion does not go to it, and does not stay.
func TestAPrimaryThatWasReplacedIsRefused(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	if _, err := store.Open(t.Context(), p.ofStandby, store.DefaultTimeouts()); err == nil || !strings.Contains(err.Error(), "is a standby") {
		t.Errorf("a standby is taken for a primary: %v", err)
	}
	reader, err := store.OpenReader(t.Context(), p.ofStandby, store.DefaultTimeouts())
	if err != nil {
		t.Fatalf("a standby cannot be read: %v", err)
	}
	reader.Close()
	p.primary.Kill()
	if err := p.standby.Promote(t.Context()); err != nil {
		t.Fatal(err)
	}
	onNew, err := p.open(t, p.ofEither).Lead(t.Context(), "on the new one", silence, func() {})
	if err != nil {
		t.Fatal(err)
	}
	defer onNew.End()
	if got := onNew.Lineage(); got.Timeline != 2 || got.System == "" {
		t.Errorf("the promoted standby is on %s, want timeline 2", got)
	}
	if again, err := store.ParseLineage(onNew.Lineage().String()); err != nil || again != onNew.Lineage() {
		t.Errorf("%s is read as %v, %v", onNew.Lineage(), again, err)
	}

	if err := p.primary.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := p.open(t, p.ofEither) // it knows nothing
	var refusals int
	s.OnOldPrimary(func(error) { refusals++ })
	onOld, err := s.Lead(t.Context(), "on the old one", silence, func() {})
	if err != nil {
		t.Fatal(err)
	}
	defer onOld.End()
	if got := onOld.Lineage(); got.Timeline != 1 || got.System != onNew.Lineage().System {
		t.Fatalf("the old primary is on %s, want timeline 1 of the system of %s", got, onNew.Lineage())
	}
	s.Heed(onNew.Lineage())
	if err := onOld.Keep(t.Context()); !errors.Is(err, store.ErrOldPrimary) {
		t.Errorf("the leader on the old primary ends with %v, want ErrOldPrimary", err)
	}
	onNew.End()
	next, err := s.Lead(t.Context(), "the next", silence, func() {})
	if err != nil {
		t.Fatal(err)
	}
	defer next.End()
	if next.Lineage() != onNew.Lineage() || refusals == 0 {
		t.Errorf("the next term is on %s after %d refusals", next.Lineage(), refusals)
	}
	// Earlier connections are given up, too: the old primary does not know the epoch.
	if err := s.SetQueues(t.Context(), next.Epoch, nil, quota.Config{}); err != nil {
		t.Errorf("a write of the term: %v", err)
	}
}

func TestTimelineOf(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]int64{
		"000000020000000000000003": 2,
		"0000000A00000001000000FF": 10,
		"00000002":                 0,
		"0002":                     0,
		"zzzzzzzz0000000000000003": 0,
		"000000000000000000000003": 0,
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			got, err := store.TimelineOf(file)
			if got != want || (err == nil) != (want != 0) {
				t.Errorf("timeline %d, %v; want %d", got, err, want)
			}
		})
	}
}
