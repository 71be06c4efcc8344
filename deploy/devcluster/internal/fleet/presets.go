package fleet

import (
	"embed"
	"regexp"
	"slices"
	"strings"
)

//go:embed presets/*.yaml
var presetFiles embed.FS

// PresetNames returns the names of all presets in order.
func PresetNames() []string {
	entries, err := presetFiles.ReadDir("presets")
	if err != nil {
		panic(err) // The files are part of the program.
	}
	names := []string{openbPreset}
	for _, entry := range entries {
		names = append(names, strings.TrimSuffix(entry.Name(), ".yaml"))
	}
	slices.Sort(names)
	return names
}

func preset(name string) ([]byte, bool) {
	data, err := presetFiles.ReadFile("presets/" + name + ".yaml")
	return data, err == nil
}

var firstComment = regexp.MustCompile(`^# (.*)\n`)

// Describe returns the first line of a preset's comment.
func Describe(name string) string {
	if name == openbPreset {
		return "The GPU nodes of Alibaba's cluster-trace-gpu-v2023 (needs the trace)."
	}
	data, _ := preset(name)
	if found := firstComment.FindSubmatch(data); found != nil {
		return string(found[1])
	}
	return ""
}
