package cli

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"muster.dev/muster/pkg/decide/placement/certificate"
	"muster.dev/muster/services/internal/client/exit"
	"muster.dev/muster/services/internal/client/output"
	"muster.dev/muster/services/internal/client/program"
)

func verifyCommand() *cobra.Command {
	return &cobra.Command{
		Use: "verify FILE", Short: "Check a certificate that a workload cannot start",
		Long: "Check, without a server, a certificate that \"muster explain NAME -o json --certificate\" has printed: it\n" +
			"proves that the workload cannot start on the nodes and within the quota that it states. FILE is the certificate, the whole\n" +
			"explanation, or an event of the workload; - is standard input. The check does not use the search that made the certificate.",
		Example: "  muster verify train.json",
		Args:    program.Args(1, 1, "one file"),
		RunE: func(cmd *cobra.Command, files []string) error {
			document, err := readCertificate(files[0], cmd.InOrStdin())
			if err != nil {
				return err
			}
			if err := certificate.Verify(document); err != nil {
				return fmt.Errorf("%s proves nothing: %w", files[0], err)
			}
			return output.Verified(cmd.OutOrStdout(), document)
		},
	}
}

func readCertificate(name string, in io.Reader) (*certificate.Document, error) {
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, exit.Usagef("%w", err)
		}
		defer file.Close()
		in = file
	}
	document, err := certificate.Read(in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", strings.TrimPrefix(name, "./"), err)
	}
	return document, nil
}
