package images

import (
	"fmt"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"
)

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
