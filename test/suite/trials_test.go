package suite

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// TestAPairHasTheInstallationOfBoth: what each fault needs is there when it is one of a pair.
func TestAPairHasTheInstallationOfBoth(t *testing.T) {
	t.Parallel()
	needs := func(t Trial) Shape { t.And = nil; return t.shape(Shape{NATS: 1}) }
	for _, pair := range MixedPairs(Trials(0), append(Machines(), Policies()...), 100, rand.New(rand.NewPCG(1, 1))) {
		first, second, got := needs(pair), needs(*pair.And), pair.shape(Shape{NATS: 1})
		want := Shape{
			NATS: 1, Disks: first.Disks || second.Disks, Names: first.Names || second.Names,
			Clocks: first.Clocks || second.Clocks, Quota: first.Quota || second.Quota,
		}
		if got != want {
			t.Errorf("%s has the installation %+v, want %+v", pair, got, want)
		}
	}
}

// TestServersThatAllLosePowerAreSynced: where all NATS servers of several lose power at once they have
// the setting that docs/operations.md asks for; in all other runs they have that of
// deploy/nats/nats-server.conf.
func TestServersThatAllLosePowerAreSynced(t *testing.T) {
	t.Parallel()
	all := Trial{Parts: []string{NATS(1), NATS(2), NATS(3)}, Fault: PowerLost}
	one := Trial{Parts: []string{NATS(1)}, Fault: PowerLost}
	killed := Trial{Parts: all.Parts, Fault: Killed}
	for name, c := range map[string]struct {
		trial   Trial
		servers int
		want    string
	}{
		"all of three lose power":  {all, 3, "sync_interval: always"},
		"one of three loses power": {one, 3, "sync_interval: 1s"},
		"the only one loses power": {one, 1, "sync_interval: 1s"},
		"all of three are killed":  {killed, 3, "sync_interval: 1s"},
		"all, as the second fault": {Trial{Parts: []string{Dispatcher}, Fault: Killed, And: &all}, 3, "sync_interval: always"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synced := c.trial.shape(Shape{NATS: c.servers}).Synced
			if config := (NATSServer{Synced: synced}).Config(); !strings.Contains(config, c.want) {
				t.Errorf("the configuration is\n%s\nwant %q in it", config, c.want)
			}
		})
	}
}
