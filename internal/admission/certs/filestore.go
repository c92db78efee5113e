package certs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// FileStore keeps the certificates in a folder of this machine, for managers that run as processes outside the cluster. Several may share it.
type FileStore struct {
	Dir string
}

func fileNames() []string {
	return []string{keyCACert, keyCAKey, keyCert, keyKey, keyTLSCert, keyTLSKey}
}

// Load implements Store.
func (s FileStore) Load(context.Context) (map[string][]byte, string, error) {
	unlock, err := s.lock()
	if err != nil {
		return nil, "", err
	}
	defer unlock()
	return s.read()
}

// Save implements Store.
func (s FileStore) Save(_ context.Context, data map[string][]byte, version string) error {
	unlock, err := s.lock()
	if err != nil {
		return err
	}
	defer unlock()
	_, now, err := s.read()
	if err != nil {
		return err
	}
	if now != version {
		return errChanged
	}
	for _, name := range fileNames() {
		if err := s.write(name, data[name]); err != nil {
			return fmt.Errorf("writing certificates: %w", err)
		}
	}
	return nil
}

func (s FileStore) read() (map[string][]byte, string, error) {
	data := map[string][]byte{}
	sum := sha256.New()
	for _, name := range fileNames() {
		content, err := os.ReadFile(filepath.Join(s.Dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return nil, "", fmt.Errorf("reading certificates: %w", err)
		}
		data[name] = content
		fmt.Fprintf(sum, "%s %d ", name, len(content))
		sum.Write(content)
	}
	if len(data) == 0 {
		return nil, "", nil
	}
	return data, hex.EncodeToString(sum.Sum(nil)), nil
}

// write replaces a file in one step, so that a crash leaves either the old or the new one.
func (s FileStore) write(name string, content []byte) error {
	path := filepath.Join(s.Dir, name)
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
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
	return func() { _ = file.Close() }, nil // closing lets the lock go; nothing was written to the file
}
