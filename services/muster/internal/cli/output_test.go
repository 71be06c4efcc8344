package cli_test

import (
	"slices"
	"testing"

	"github.com/spf13/cobra"

	"muster.dev/muster/services/internal/client/output"
	"muster.dev/muster/services/muster/internal/cli"
)

// Every command that has -o takes the same formats.
func TestOutputIsTheSameForAllCommands(t *testing.T) {
	t.Parallel()
	var have []string
	var look func(*cobra.Command)
	look = func(command *cobra.Command) {
		if flag := command.Flag("output"); flag != nil {
			have = append(have, command.Name())
			_, is := flag.Value.(*output.Format)
			if command.Name() == "usage" { // a report has csv, too
				is = flag.Value.Set(string(output.CSV)) == nil && flag.Value.Set(string(output.YAML)) == nil && flag.Value.Set("xml") != nil
			}
			if !is || flag.DefValue != string(output.Text) {
				t.Errorf("%s: -o is a %s, by default %q", command.CommandPath(), flag.Value.Type(), flag.DefValue)
			}
		}
		for _, below := range command.Commands() {
			look(below)
		}
	}
	look(cli.Command())
	for _, name := range []string{"apply", "delete", "describe", "events", "explain", "get", "predict", "replay", "scenario", "simulate"} {
		t.Run(name, func(t *testing.T) {
			if !slices.Contains(have, name) {
				t.Errorf("%s has no -o", name)
			}
		})
	}
}
