package sim

import (
	"math/rand/v2"
	"time"
)

// Late gangs come when all faults are over and the others have ended, so that what time
// must bring about is seen: one queue takes what the others lend, for long, and then
// each of these asks for all that is its own.
const (
	borrowAt  = faultsFor + 5*time.Minute
	reclaimAt = borrowAt + 40*time.Second
	lateUntil = reclaimAt + guaranteedFor + time.Minute
	borrowers = 12
)

// lends reports that there are late gangs in this seed: so it is in one of 32.
func (w *World) lends() bool { return w.ruled() && w.Seed%32 == 5 }

func (s *submitter) addLate() {
	random := rand.New(rand.NewPCG(s.w.Seed, 5))
	add := func(queue string, gpus int, at time.Duration) {
		each := s.add(queue, gpus, 1, "1")
		each.until = lateUntil
		s.w.after(at+time.Duration(random.Int64N(int64(10*time.Second))).Truncate(time.Millisecond), func() { s.drive(each) })
	}
	borrower := ruledQueues[random.IntN(len(ruledQueues))]
	for range borrowers {
		add(borrower, 1+random.IntN(2), borrowAt)
	}
	for _, queue := range ruledQueues {
		if queue != borrower {
			add(queue, int(s.w.disk.first.queue(queue).nominal), reclaimAt)
		}
	}
}
