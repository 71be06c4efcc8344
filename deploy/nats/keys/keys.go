// Package keys makes the nkeys of NATS users and keeps them as files, one seed each, for a
// local stack and for tests. It is not for installations with a secret store.
package keys

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/nats-io/nkeys"
)

// File returns the file with the seed of a user.
func File(dir, user string) string { return filepath.Join(dir, user+".nk") }

// Ensure makes a seed for each user that has none in dir, and returns the public keys by
// user. The files are readable by all, because containers read them under other user ids;
// the directory, which only its owner may enter, protects them.
func Ensure(dir string, users []string) (map[string]string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory of keys: %w", err)
	}
	public := map[string]string{}
	for _, user := range users {
		key, err := ensure(File(dir, user))
		if err != nil {
			return nil, fmt.Errorf("key of NATS user %q: %w", user, err)
		}
		public[user] = key
	}
	return public, nil
}

func ensure(file string) (public string, err error) {
	seed, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		seed, err = create(file)
	}
	if err != nil {
		return "", err
	}
	pair, err := nkeys.FromSeed(bytes.TrimSpace(seed))
	if err != nil {
		return "", fmt.Errorf("%s does not hold the seed of an nkey: %w", file, err)
	}
	defer pair.Wipe()
	return pair.PublicKey()
}

func create(file string) ([]byte, error) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return nil, err
	}
	defer pair.Wipe()
	seed, err := pair.Seed()
	if err != nil {
		return nil, err
	}
	seed = append(seed, '\n')
	return seed, os.WriteFile(file, seed, 0o644)
}
