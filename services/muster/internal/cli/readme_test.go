package cli_test

import (
	"testing"

	"muster.dev/muster/services/internal/client/clitest"
	"muster.dev/muster/services/muster/internal/cli"
)

func TestTheReadmeListsTheCommands(t *testing.T) {
	t.Parallel()
	clitest.ReadmeListsCommands(t, cli.Command())
}
