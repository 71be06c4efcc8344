package main

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// database makes the passwords of Postgres' roles, and the URLs with them, for the logins
// that database.sh creates. The files are readable by all, for containers, like the keys.
func database(dir string) error {
	if _, err := password(dir, "postgres-password"); err != nil {
		return err
	}
	for login, url := range map[string]string{"muster_owner": "database-migration-url", "queue_manager": "database-url"} {
		secret, err := password(dir, login+"-password")
		if err != nil {
			return err
		}
		text := fmt.Sprintf("postgres://%s:%s@postgres:5432/muster?sslmode=verify-full&sslrootcert=/run/secrets/ca\n", login, secret)
		if err := os.WriteFile(filepath.Join(dir, url), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func password(dir, name string) ([]byte, error) {
	file := filepath.Join(dir, name)
	content, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		content = []byte(rand.Text())
		err = os.WriteFile(file, content, 0o644)
	}
	return bytes.TrimSpace(content), err
}
