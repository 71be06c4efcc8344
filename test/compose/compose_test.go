package compose

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"muster.dev/muster/test/suite"
)

func TestEachContainerIsKilledUnderLoad(t *testing.T) {
	suite.Kills(t, &stack{compose: engine(t)})
}

// engine returns the command of Compose for an engine that has the images, or skips the
// test.
func engine(t *testing.T) []string {
	t.Helper()
	if os.Getenv("MUSTER_TEST_PROVIDER") == "local" {
		t.Skip("MUSTER_TEST_PROVIDER=local: test/suite/local kills the same parts as processes")
	}
	compose := command()
	if compose == nil {
		t.Skip("no Docker engine with Compose")
	}
	if err := exec.Command("docker", "image", "inspect", "muster:local", "muster-nats:2.15.2", "muster-postgres:15", "muster-devcluster:local").Run(); err != nil {
		if os.Getenv("MUSTER_REQUIRE_SERVICES") != "" {
			t.Fatal("the engine has no images: run `make images`")
		}
		t.Skip("the engine has no images: run `make images`")
	}
	return compose
}

// Everything published is for this machine only, and nothing has more rights
// than it needs.
func TestEveryServiceIsContained(t *testing.T) {
	compose := command()
	if compose == nil {
		t.Skip("no Docker engine with Compose")
	}
	s := &stack{compose: compose, env: append(os.Environ(), "TEST_POSTGRES_PORT=1")}
	config, err := s.run(t.Context(), compose[0], append(compose[1:], "-f", "docker-compose.yaml", "--profile", "console", "config")...)
	if err != nil {
		t.Fatal(err)
	}
	checkContained(t, config)
}

func checkContained(t *testing.T, config []byte) {
	t.Helper()
	file := decode(t, config)
	if len(file.Services) < 11 {
		t.Errorf("there are only %d services", len(file.Services))
	}
	for name, service := range file.Services {
		if !service.ReadOnly || strings.Join(service.CapDrop, " ") != "ALL" ||
			len(service.SecurityOpt) != 1 || service.SecurityOpt[0] != "no-new-privileges:true" {
			t.Errorf("%s: read_only %v, cap_drop %v, security_opt %v", name, service.ReadOnly, service.CapDrop, service.SecurityOpt)
		}
		if service.MemLimit == nil || service.PidsLimit == 0 {
			t.Errorf("%s has no limit of memory or processes", name)
		}
		for _, port := range service.Ports {
			if !loopbackOnly(port) {
				t.Errorf("%s publishes %v on more than the loopback interface", name, port)
			}
		}
	}
}
