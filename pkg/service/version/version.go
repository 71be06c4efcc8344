// Package version reports the running build of Muster. It is not for protocol versions.
package version

import (
	"runtime/debug"
)

// release is set by the linker: -X muster.dev/muster/pkg/service/version.release=v1.2.3.
var release = "dev"

// String returns the release, and the revision if the build has it.
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
