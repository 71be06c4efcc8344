package publish

import (
	"time"

	"muster.dev/muster/pkg/workload"
	"muster.dev/muster/services/capacity-watcher/internal/picture"
)

const (
	// largeGang is from how many pods on the news of a gang is held back.
	largeGang = 64
	// perPod is how long, per pod, no other news of a large gang follows the last:
	// a message names all its pods, and while they start each of them changes
	// several times. For 512 pods it is a tenth of a second.
	perPod = 200 * time.Microsecond
)

// pace remembers when large gangs were told of last.
type pace map[workload.ID]time.Time

// early returns for how long there is to be no news of the thing yet, zero when it
// is to be told now. What was never told and what is gone is not held back.
func (p pace) early(key picture.Key, pods int, now time.Time) time.Duration {
	last, told := p[key.Gang]
	if !told || pods < largeGang {
		return 0
	}
	return max(0, last.Add(time.Duration(pods)*perPod).Sub(now))
}

// told notes that a thing is being told of.
func (p pace) told(key picture.Key, pods int, now time.Time) {
	if pods < largeGang {
		delete(p, key.Gang)
	} else {
		p[key.Gang] = now
	}
}
