// Package version tells which build of Muster is running.
package version

import (
	"runtime/debug"
)

// release is set by the linker: -X muster.dev/muster/pkg/version.release=v1.2.3.
var release = "dev"

// String returns the release, and the revision when the build knows it.
func String() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return release
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" && len(setting.Value) >= 12 {
			return release + "+" + setting.Value[:12]
		}
	}
	return release
}
