// Package integrations checks what Kruise ships for other programs against those programs and against its own types.
package integrations
