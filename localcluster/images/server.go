// Package images gives real nodes their images on a machine that may have no way to any registry.
//
// A registry on the loopback address answers for every registry there is: containerd is told, by WriteHosts, to ask it
// for every image name. It knows the images that were loaded into its folder (Store) and makes stand-ins (StandIns) for
// the few well-known names that manifests and tests use. It knows nothing else, and says so: an image that exists
// nowhere fails here as it would anywhere.
package images

import (
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/distribution/reference"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/spf13/cobra"
)

// Server answers the pull requests of the OCI distribution API for every registry at once. Which one is meant is in the
// parameter "ns" that containerd adds when it asks a registry in another's place; without it, docker.io is meant.
//
// Images of the store come first, then stand-ins. It changes no names: pushes are refused, for images are loaded into
// the store's folder. The registry of go-containerregistry can't do this: it keeps manifests in memory by repository, so it
// can neither tell registries apart nor resolve a name when it is asked for.
type Server struct {
	Store    Store
	StandIns *StandIns
	Log      *log.Logger // one line per image looked up, and what went wrong
}

// The error codes of the distribution API.
const (
	codeManifestUnknown = "MANIFEST_UNKNOWN"
	codeBlobUnknown     = "BLOB_UNKNOWN"
	codeNameInvalid     = "NAME_INVALID"
	codeUnsupported     = "UNSUPPORTED"
	codeUnknown         = "UNKNOWN"
)

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Docker-Distribution-Api-Version", "registry/2.0")
	path, isAPI := strings.CutPrefix(r.URL.Path, "/v2/")
	if !isAPI {
		refuse(w, http.StatusNotFound, codeUnsupported, "this is a container registry: its API is below /v2/")
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		refuse(w, http.StatusMethodNotAllowed, codeUnsupported, "images are loaded with kruise-local load-image, not pushed")
		return
	}
	if path == "" {
		w.WriteHeader(http.StatusOK)
		return
	}
	if repository, wanted, ok := cutLast(path, "/manifests/"); ok {
		s.serveManifest(w, r, repository, wanted)
		return
	}
	if _, wanted, ok := cutLast(path, "/blobs/"); ok {
		s.serveBlob(w, r, wanted)
		return
	}
	refuse(w, http.StatusNotFound, codeUnsupported, "only pulls are supported")
}

// cutLast cuts at the last separator: repositories may have any word in their path.
func cutLast(path, separator string) (before, after string, found bool) {
	i := strings.LastIndex(path, separator)
	if i < 0 {
		return "", "", false
	}
	return path[:i], path[i+len(separator):], true
}

func (s *Server) serveManifest(w http.ResponseWriter, r *http.Request, repository, wanted string) {
	digest, err := v1.NewHash(wanted)
	if err != nil { // then it is a tag
		name, err := nameOf(r.URL.Query().Get("ns"), repository, wanted)
		if err != nil {
			refuse(w, http.StatusBadRequest, codeNameInvalid, err.Error())
			return
		}
		if digest, err = s.resolve(name); err != nil {
			s.fail(w, codeManifestUnknown, err)
			return
		}
		s.Log.Printf("%s %s is %s", r.Method, name, digest)
	}
	content, mediaType, err := s.Store.Manifest(digest)
	if err != nil {
		s.fail(w, codeManifestUnknown, err)
		return
	}
	w.Header().Set("Content-Type", string(mediaType))
	w.Header().Set("Content-Length", strconv.Itoa(len(content)))
	w.Header().Set("Docker-Content-Digest", digest.String())
	if r.Method == http.MethodHead {
		return
	}
	if _, err := w.Write(content); err != nil {
		s.Log.Printf("sending manifest %s: %v", digest, err)
	}
}

// nameOf is an image's full name.
func nameOf(registry, repository, tag string) (reference.NamedTagged, error) {
	if registry == "" {
		registry = "docker.io"
	}
	named, err := reference.ParseNormalizedNamed(registry + "/" + repository)
	if err != nil {
		return nil, err
	}
	return reference.WithTag(named, tag)
}

// resolve tells the digest that a name stands for.
func (s *Server) resolve(name reference.NamedTagged) (v1.Hash, error) {
	descriptor, err := s.Store.Resolve(name)
	if errors.Is(err, ErrUnknown) {
		var image v1.Image
		if image, err = s.StandIns.Make(name); err != nil {
			return v1.Hash{}, err
		}
		descriptor, err = s.Store.AddBlobs(image)
	}
	return descriptor.Digest, err
}

func (s *Server) serveBlob(w http.ResponseWriter, r *http.Request, wanted string) {
	digest, err := v1.NewHash(wanted)
	if err != nil {
		refuse(w, http.StatusBadRequest, "DIGEST_INVALID", err.Error())
		return
	}
	file, _, err := s.Store.Blob(digest)
	if err != nil {
		s.fail(w, codeBlobUnknown, err)
		return
	}
	defer file.Close()
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Docker-Content-Digest", digest.String())
	http.ServeContent(w, r, "", time.Time{}, file) // ranges, too
}

// fail tells what is not known, with the code of its kind, and anything else as a fault of the server.
func (s *Server) fail(w http.ResponseWriter, code string, err error) {
	s.Log.Print(err)
	if errors.Is(err, ErrUnknown) {
		refuse(w, http.StatusNotFound, code, err.Error())
		return
	}
	refuse(w, http.StatusInternalServerError, codeUnknown, err.Error())
}

// refuse writes an error as the distribution API spells it.
func refuse(w http.ResponseWriter, status int, code, message string) {
	type problem struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// A client that has gone does not need the reason.
	_ = json.NewEncoder(w).Encode(map[string][]problem{"errors": {{code, message}}})
}

// NewCommand is the registry as a program of its own.
func NewCommand() *cobra.Command {
	var address, folder, busybox string
	cmd := &cobra.Command{
		Use:          "registry",
		Short:        "Serve images to the real nodes of this machine",
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			listener, err := net.Listen("tcp", address)
			if err != nil {
				return fmt.Errorf("listening for pulls: %w", err)
			}
			server := &Server{
				Store:    Store(folder),
				StandIns: NewStandIns(busybox),
				Log:      log.New(cmd.ErrOrStderr(), "", log.LstdFlags|log.Lmicroseconds),
			}
			// It ends by any signal: files of the store appear whole, and pulls that are cut off are tried again.
			httpServer := &http.Server{Handler: server, ReadHeaderTimeout: 10 * time.Second}
			return fmt.Errorf("serving pulls: %w", httpServer.Serve(listener))
		},
	}
	cmd.Flags().StringVar(&address, "listen", "127.0.0.1:5000", "address to listen at")
	cmd.Flags().StringVar(&folder, "store", "", "folder of the images")
	cmd.Flags().StringVar(&busybox, "busybox", DefaultBusybox, "static busybox that stand-in images are made of")
	return cmd
}
