package sim

import (
	"math"
	"math/rand/v2"
	"strings"
	"time"
)

// Something is away for long: everything that is due in minutes has been due many
// times when it comes back.
const (
	shortestAway = time.Minute
	longestAway  = time.Hour
)

// services whose processes may all be away at once.
var services = []string{"intake", "capacity-watcher", "queue-manager", "dispatcher"}

// drawAway draws what is away for long: one or two things, each as likely for a few
// minutes as for many.
func drawAway(w *World) (timed []TimedFault) {
	random := rand.New(rand.NewPCG(w.Seed, uint64(classAway)+100))
	kinds := []Fault{NATSAway, PostgresAway, APIAway, ServiceAway, ServiceAway, ServiceAway, ServiceAway, LinkCut}
	for range 1 + random.IntN(2) {
		share := random.Float64()
		timed = append(timed, TimedFault{
			At:    time.Duration(random.Int64N(int64(faultsFor))).Truncate(time.Millisecond),
			Fault: kinds[random.IntN(len(kinds))], Pick: random.Uint64() >> 12,
			For: time.Duration(float64(shortestAway) * math.Pow(float64(longestAway/shortestAway), share)).Truncate(time.Millisecond),
		})
	}
	return timed
}

// strikeService ends all processes of a service, and none starts for a while.
func (n *nemesis) strikeService(f TimedFault) string {
	service := services[f.Pick%uint64(len(services))]
	for _, m := range n.w.machines {
		if strings.HasPrefix(m.name, service) {
			m.away = later(m.away, n.w.now.Add(f.For))
			m.crash()
		}
	}
	return service + " for " + f.For.String()
}

// cutLink cuts what runs in the cluster from NATS, which is in the core.
func (n *nemesis) cutLink(f TimedFault) string {
	w := n.w
	for _, m := range w.machines {
		if !strings.HasPrefix(m.name, "dispatcher") && !strings.HasPrefix(m.name, "capacity-watcher") {
			continue
		}
		m.cut[natsServer] = true
		w.after(f.For, func() {
			delete(m.cut, natsServer)
			w.net.reconnected(m, natsServer)
		})
	}
	return f.For.String()
}
