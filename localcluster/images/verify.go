package images

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// checkedReader fails at the end of a content that is not what its digest says.
type checkedReader struct {
	content io.Reader
	sum     hash.Hash
	want    v1.Hash
}

// verified checks content against its digest while it is read; only SHA-256 is known.
func verified(content io.Reader, want v1.Hash) (io.Reader, error) {
	if want.Algorithm != "sha256" {
		return nil, fmt.Errorf("checking %s: digests of kind %q are not supported", want, want.Algorithm)
	}
	return &checkedReader{content: content, sum: sha256.New(), want: want}, nil
}

func (r *checkedReader) Read(p []byte) (int, error) {
	n, err := r.content.Read(p)
	r.sum.Write(p[:n])
	if err == io.EOF {
		if got := hex.EncodeToString(r.sum.Sum(nil)); got != r.want.Hex {
			return n, fmt.Errorf("checking %s: the content has digest sha256:%s", r.want, got)
		}
	}
	return n, err
}
