package compose

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

// The parser of today's Compose, the library that `docker compose` is made with,
// takes the file without a complaint and reads the same stack of it.
func TestTodaysComposeReadsTheFile(t *testing.T) {
	t.Parallel()
	want := []string{
		"capacity-watcher", "cluster-setup", "devcluster", "dispatcher", "intake", "migrate", "nats", "postgres", "queue-manager-1",
		"queue-manager-2",
	}
	if got := parsed(t, nil, "../../docker-compose.yaml", "ports.yaml").ServiceNames(); !slices.Equal(got, want) {
		t.Errorf("services are %v, want %v", got, want)
	}
	project := parsed(t, []string{"console"}, "../../docker-compose.yaml", "ports.yaml")
	if got, want := project.ServiceNames(), slices.Sorted(slices.Values(append(want, "console"))); !slices.Equal(got, want) {
		t.Errorf("with the console, services are %v, want %v", got, want)
	}
	for name, s := range project.Services {
		if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || s.MemLimit == 0 || s.PidsLimit == 0 || s.Image == "" {
			t.Errorf("%s: read_only %v, cap_drop %v, mem_limit %d, pids_limit %d, image %q", name, s.ReadOnly, s.CapDrop, s.MemLimit, s.PidsLimit, s.Image)
		}
		for _, port := range s.Ports {
			if port.HostIP != "127.0.0.1" {
				t.Errorf("%s publishes %v on more than the loopback interface", name, port)
			}
		}
		for _, secret := range s.Secrets {
			if project.Secrets[secret.Source].File == "" {
				t.Errorf("%s has the secret %q, which no file holds", name, secret.Source)
			}
		}
		checkFlags(t, name, s)
		// What ends does one thing; all else says how it is, and is waited for by that.
		if s.Restart != "no" && (s.HealthCheck == nil || len(s.HealthCheck.Test) < 2) {
			t.Errorf("%s has no health check", name)
		}
		for on, dependency := range s.DependsOn {
			want := types.ServiceConditionHealthy
			if project.Services[on].Restart == "no" {
				want = types.ServiceConditionCompletedSuccessfully
			}
			if _, ok := project.Services[on]; !ok || dependency.Condition != want {
				t.Errorf("%s waits for %q to be %s, want %s", name, on, dependency.Condition, want)
			}
		}
	}
}

// checkFlags checks that files in a command are secrets or volumes of its service.
func checkFlags(t *testing.T, name string, s types.ServiceConfig) {
	t.Helper()
	for _, argument := range s.Command {
		_, file, ok := strings.Cut(argument, "=")
		if !ok || !strings.HasPrefix(file, "/") {
			continue
		}
		secret := slices.ContainsFunc(s.Secrets, func(c types.ServiceSecretConfig) bool { return file == "/run/secrets/"+c.Source })
		volume := slices.ContainsFunc(s.Volumes, func(v types.ServiceVolumeConfig) bool { return strings.HasPrefix(file, v.Target) })
		if !secret && !volume && !strings.HasPrefix(file, "/credentials") {
			t.Errorf("%s: nothing is mounted at %s", name, argument)
		}
	}
}

func parsed(t *testing.T, profiles []string, files ...string) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions(files, cli.WithName("muster-test"), cli.WithProfiles(profiles),
		cli.WithEnv(append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "MUSTER_") }), "TEST_POSTGRES_PORT=1")))
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return project
}
