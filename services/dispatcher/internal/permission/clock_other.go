//go:build !linux

package permission

import "time"

var began = time.Now()

// sinceBoot stands still here while the machine is suspended. Muster runs on Linux; this is for
// work on it elsewhere.
func sinceBoot() time.Duration { return time.Since(began) }
