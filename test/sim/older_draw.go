package sim

import (
	"math"
	"math/rand/v2"
	"time"
)

const (
	shortestLapse = 100 * time.Millisecond
	longestLapse  = 100 * time.Second
)

// drawOlder draws how much time is lost, once or twice: as likely a moment as a
// minute. In one of four seeds moments are lost again and again, and the leader's last
// messages of each arrive late.
func drawOlder(w *World) (timed []TimedFault) {
	random := rand.New(rand.NewPCG(w.Seed, uint64(classOlder)+100))
	for range 1 + random.IntN(2) {
		share := random.Float64()
		timed = append(timed, TimedFault{
			At:    5*time.Second + time.Duration(random.Int64N(int64(faultsFor))).Truncate(time.Millisecond),
			Fault: Older, Pick: random.Uint64() >> 12,
			For: time.Duration(float64(shortestLapse) * math.Pow(float64(longestLapse/shortestLapse), share)).Truncate(time.Millisecond),
		})
	}
	if random.IntN(4) > 0 {
		return timed
	}
	between := func(least, most time.Duration) time.Duration {
		return least + time.Duration(random.Int64N(int64(most-least))).Truncate(time.Millisecond)
	}
	for at := between(5*time.Second, 10*time.Second); at < faultsFor; at += between(8*time.Second, 14*time.Second) {
		older := TimedFault{At: at, Fault: Older, Pick: random.Uint64() >> 12, For: between(time.Second, lateFor)}
		timed = append(timed, older, lateIn(older, between(time.Second, 5*time.Second)))
	}
	return timed
}

// lateIn has the leader send nothing that arrives in the time that is lost, and stand
// still just before it is over. What it has sent comes some time after Postgres is back:
// the next leader may have compared the streams by then.
func lateIn(older TimedFault, after time.Duration) TimedFault {
	return TimedFault{At: older.At, Fault: LateLeader, Pick: uint64(older.For - time.Millisecond), For: older.For + awayAfter(older) + after}
}

// awayAfter is how long Postgres is away before it is restored to an older state.
func awayAfter(older TimedFault) time.Duration { return time.Duration(older.Pick%6) * time.Second }
