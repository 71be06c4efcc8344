// Package docker finds a Docker engine and the images of Muster, and removes what aborted
// test runs have left in it. The images have the names that make images gives them, unless
// the variables of docker-compose.yaml name others.
package docker

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/moby/moby/client"
)

// MusterImage is the image of the services and the client.
func MusterImage() string { return setting("MUSTER_IMAGE", "muster:local") }

// NATSImage is the image of nats-server.
func NATSImage() string { return setting("MUSTER_NATS_IMAGE", "muster-nats:2.15.2") }

// PostgresImage is the image of Postgres.
func PostgresImage() string { return setting("MUSTER_POSTGRES_IMAGE", "muster-postgres:15") }

// DevclusterImage is the image of the dev cluster.
func DevclusterImage() string { return setting("MUSTER_DEVCLUSTER_IMAGE", "muster-devcluster:local") }

func setting(variable, otherwise string) string {
	if value := os.Getenv(variable); value != "" {
		return value
	}
	return otherwise
}

// askTimeout bounds the first question to the engine.
const askTimeout = 5 * time.Second

// Connect returns a client of an engine that answers.
func Connect(ctx context.Context) (*client.Client, error) {
	engine, err := client.New(client.FromEnv)
	if err != nil {
		return nil, fmt.Errorf("no Docker engine: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if _, err := engine.Ping(ctx, client.PingOptions{}); err != nil {
		return nil, fmt.Errorf("no Docker engine: %w", err)
	}
	return engine, nil
}

// MissingImages lists those of the images that the engine does not have. None is ever
// pulled.
func MissingImages(ctx context.Context, engine *client.Client, images ...string) []string {
	var missing []string
	for _, image := range images {
		if _, err := engine.ImageInspect(ctx, image); err != nil {
			missing = append(missing, image)
		}
	}
	return missing
}

// Labels of everything that a run makes, so that the next one can remove what
// an aborted one has left: no other container does it (no Ryuk).
const (
	ownerLabel   = "dev.muster.test.owner"   // host and process
	startedLabel = "dev.muster.test.started" // seconds since 1970
)

// abandonedAfter is when what a process of another machine has made is taken for
// left over.
const abandonedAfter = 2 * time.Hour

// Labels are for everything that this process makes in an engine.
func Labels() map[string]string {
	return map[string]string{ownerLabel: owner(os.Getpid()), startedLabel: strconv.FormatInt(time.Now().Unix(), 10)}
}

func owner(pid int) string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s/%d", host, pid)
}

// abandoned reports whether what has these labels has no living owner.
func abandoned(labels map[string]string, now time.Time) bool {
	host, id, found := strings.Cut(labels[ownerLabel], "/")
	if pid, err := strconv.Atoi(id); found && err == nil && owner(pid) == host+"/"+id {
		_, err := os.Stat("/proc/" + id)
		return err != nil || pid == os.Getpid() // of our own id, but from before
	}
	started, err := strconv.ParseInt(labels[startedLabel], 10, 64)
	return err != nil || now.Sub(time.Unix(started, 0)) > abandonedAfter
}

// Sweep removes the containers, with their volumes, and the networks of aborted
// runs, and says what it removed.
func Sweep(ctx context.Context, engine *client.Client) ([]string, error) {
	ours := make(client.Filters).Add("label", ownerLabel)
	found, err := engine.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: ours})
	if err != nil {
		return nil, fmt.Errorf("look for containers of aborted runs: %w", err)
	}
	var removed []string
	for _, c := range found.Items {
		if !abandoned(c.Labels, time.Now()) {
			continue
		}
		if _, err := engine.ContainerRemove(ctx, c.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true}); err != nil {
			return removed, fmt.Errorf("remove the container %s of an aborted run: %w", c.ID, err)
		}
		removed = append(removed, "container "+c.ID[:12])
	}
	networks, err := engine.NetworkList(ctx, client.NetworkListOptions{Filters: ours})
	if err != nil {
		return removed, fmt.Errorf("look for networks of aborted runs: %w", err)
	}
	for _, n := range networks.Items {
		if !abandoned(n.Labels, time.Now()) {
			continue
		}
		if _, err := engine.NetworkRemove(ctx, n.ID, client.NetworkRemoveOptions{}); err != nil {
			return removed, fmt.Errorf("remove the network %s of an aborted run: %w", n.Name, err)
		}
		removed = append(removed, "network "+n.Name)
	}
	return removed, nil
}
