// Command compose makes the secrets of the local stack in containers: keys of the
// NATS users with the accounts that know them, and the password of Postgres.
// What is there already stays.
//
//	compose DIR
//
// It is for a laptop. An installation brings its own secrets.
package main

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"muster.dev/muster/deploy/nats/access"
	"muster.dev/muster/deploy/nats/keys"
)

// cluster is what docker-compose.yaml calls the dev cluster.
const cluster = "local"

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: compose DIR")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "compose:", err)
		os.Exit(1)
	}
}

func run(dir string) error {
	users := access.Users(cluster)
	var names []string
	for _, user := range users {
		names = append(names, user.Name)
	}
	public, err := keys.Ensure(dir, names)
	if err != nil {
		return err
	}
	var accounts bytes.Buffer
	if err := access.WriteConfig(&accounts, users, public); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "accounts.conf"), accounts.Bytes(), 0o644); err != nil {
		return err
	}
	return database(dir)
}

// database makes the password of Postgres and the URL that has it. The files are
// readable by all for the sake of containers, as those of the keys.
func database(dir string) error {
	file := filepath.Join(dir, "postgres-password")
	password, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		password = []byte(rand.Text())
		err = os.WriteFile(file, password, 0o644)
	}
	if err != nil {
		return err
	}
	url := fmt.Sprintf("postgres://muster:%s@postgres:5432/muster?sslmode=disable\n", bytes.TrimSpace(password))
	return os.WriteFile(filepath.Join(dir, "database-url"), []byte(url), 0o644)
}
