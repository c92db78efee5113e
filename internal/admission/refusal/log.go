package refusal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/go-logr/logr"
)

const (
	// logName is the name of the protection log in its folder, rotatedName that of the last one that was rotated.
	logName, rotatedName = "protection.log", "protection.log.1"
	// maxBytes is the size at which the log is rotated.
	maxBytes = 100 << 20
)

// Line is one denied request in the protection log. Wire: software that collects audit logs reads it.
type Line struct {
	// Event says what denied it: PUB or DeletionProtection.
	Event string
	// Kind, Namespace and Name are of the object that denied it.
	Kind, Namespace, Name string
	// UserAgent is the name of the user who was denied.
	UserAgent string
}

// Log is the protection log: a file with a line of JSON for every denied request. A nil Log writes nothing.
type Log struct {
	dir    string
	logger logr.Logger

	mu   sync.Mutex
	file *os.File
	size int64
}

// OpenLog opens the protection log in a folder; none where the folder is not named or does not exist.
func OpenLog(dir string, logger logr.Logger) (*Log, error) {
	if dir == "" {
		return nil, nil
	}
	l := &Log{dir: dir, logger: logger}
	err := l.open()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("opening the protection log: %w", err)
	}
	return l, nil
}

func (l *Log) open() error {
	file, err := os.OpenFile(filepath.Join(l.dir, logName), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		return errors.Join(err, file.Close())
	}
	l.file, l.size = file, info.Size()
	return nil
}

// Write appends a line. An error goes to the manager's own log: no request fails because of it.
func (l *Log) Write(line Line) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.write(line); err != nil {
		l.logger.Error(err, "The protection log can't be written")
	}
}

func (l *Log) write(line Line) error {
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	if l.size >= maxBytes {
		err = l.rotate()
	}
	if err != nil && l.size >= 2*maxBytes {
		return err // a folder in which nothing can be renamed must not fill up
	}
	n, writeErr := l.file.Write(append(text, '\n'))
	l.size += int64(n)
	return errors.Join(err, writeErr)
}

// rotate renames the log, over the one that was rotated before, and opens a new one. After an error the old file stays in use: the next
// line tries again, from wherever this try ended.
func (l *Log) rotate() error {
	err := os.Rename(filepath.Join(l.dir, logName), filepath.Join(l.dir, rotatedName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // renamed before, and no new one could be opened
		return err
	}
	former := l.file
	if err := l.open(); err != nil {
		return err
	}
	return former.Close()
}
