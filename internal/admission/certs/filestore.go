package certs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// FileStore keeps the CA in a folder of this machine, for managers that run as processes outside the cluster. Several may share it.
type FileStore struct {
	Dir string
}

// Load implements Store. The version is the CA itself.
func (s FileStore) Load(context.Context) (map[string][]byte, string, error) {
	unlock, err := s.lock()
	if err != nil {
		return nil, "", err
	}
	defer unlock()
	data, err := s.read()
	return data, string(data[keyCACert]), err
}

// Save implements Store. A crash in the middle leaves a CA and a key that don't belong together, which the next manager replaces.
func (s FileStore) Save(_ context.Context, data map[string][]byte, version string) error {
	unlock, err := s.lock()
	if err != nil {
		return err
	}
	defer unlock()
	stored, err := s.read()
	if err != nil {
		return err
	}
	if string(stored[keyCACert]) != version {
		return ErrConflict
	}
	for name, content := range data {
		if err := os.WriteFile(filepath.Join(s.Dir, name), content, 0o600); err != nil {
			return fmt.Errorf("writing the CA: %w", err)
		}
	}
	return nil
}

func (s FileStore) read() (map[string][]byte, error) {
	data := map[string][]byte{}
	for _, name := range []string{keyCACert, keyCAKey, keyTLSCert, keyTLSKey} {
		content, err := os.ReadFile(filepath.Join(s.Dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return nil, fmt.Errorf("reading certificates: %w", err)
		}
		data[name] = content
	}
	return data, nil
}

// lock waits until no other process reads or writes the folder.
func (s FileStore) lock() (unlock func(), err error) {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of the certificates: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(s.Dir, ".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the folder of the certificates: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("locking %s: %w", file.Name(), err), file.Close())
	}
	return func() { _ = file.Close() }, nil // closing releases the lock; nothing was written to the file
}
