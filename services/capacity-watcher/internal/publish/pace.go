package publish

import (
	"time"

	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/capacity-watcher/internal/observed"
)

const (
	// largeGang is the number of pods from which on a gang's messages are throttled.
	largeGang = 64
	// perPod is the pause between messages of a large gang, per pod: a message names all
	// its pods, and each of them changes several times while it starts. For 512 pods the
	// pause is a tenth of a second.
	perPod = 200 * time.Microsecond
)

// pace has the time of each large gang's last message.
type pace map[workload.ID]time.Time

// early returns how long a message must still wait. The first message of a gang and
// that of its end never wait.
func (p pace) early(key observed.Key, pods int, now time.Time) time.Duration {
	last, known := p[key.Gang]
	if !known || pods < largeGang {
		return 0
	}
	return max(0, last.Add(time.Duration(pods)*perPod).Sub(now))
}

// published records a message.
func (p pace) published(key observed.Key, pods int, now time.Time) {
	if pods < largeGang {
		delete(p, key.Gang)
	} else {
		p[key.Gang] = now
	}
}
