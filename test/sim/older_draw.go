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
// messages of each arrive late. In another one of four the commands of the lost time are
// lost with it, so that only events tell of its attempts.
func drawOlder(w *World) []TimedFault {
	timed := drawLapses(w)
	random := rand.New(rand.NewPCG(w.Seed, uint64(classOlder)+200))
	if random.IntN(4) > 0 {
		return timed
	}
	for _, f := range timed {
		if f.Fault == Older {
			timed = append(timed, withoutCommands(f, random))
		}
	}
	return timed
}

// withoutCommands has the commands purged just before the lost time is over, with the
// leader standing still, which would send them again: see nemesis.purge for the Pick.
func withoutCommands(older TimedFault, random *rand.Rand) TimedFault {
	pick := random.Uint64()>>12 | unread
	for pick%3 != ofCommands {
		pick++
		pick |= unread
	}
	return TimedFault{At: older.At + older.For - stillFor(pick) - 5*time.Millisecond, Fault: Purged, Pick: pick, For: time.Second}
}

// drawLapses draws the time that is lost.
func drawLapses(w *World) (timed []TimedFault) {
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
