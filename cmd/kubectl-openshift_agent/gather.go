package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/gather"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/snapshot"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/dial"
)

// maxLogBytes is the largest value of --log-bytes.
const maxLogBytes = 64 << 20

// connectTimeout is the time for one connection to assisted-service.
const connectTimeout = 30 * time.Second

// gatherFlags are the flags of the command gather.
type gatherFlags struct {
	output, serviceCA string
	since, timeout    time.Duration
	logBytes          int64
	service           bool
}

func (p *plugin) gatherCommand() *cobra.Command {
	f := gatherFlags{}
	cmd := &cobra.Command{
		Use:   "gather CLUSTER",
		Short: "Write the objects, events and logs of a cluster to an archive, without credentials",
		Long: "Write what a person needs to analyze a cluster to a tar.gz: the objects of the cluster and of its namespace, events,\n" +
			"logs of the managers, and events and host logs of assisted-service. Open index.html of the archive with a browser: it\n" +
			"shows the first cause, a timeline, the hosts, all conditions and events.\n\n" +
			"Credentials are removed. The content of Secrets and ConfigMaps is not read. What is not readable with your rights is\n" +
			"listed as not readable. Review the archive before you share it: it names your servers and networks.",
		Example:           "  " + displayName + " gather ha\n  " + displayName + " gather ha --since 2h --output ha.tar.gz",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: p.completeClusters,
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.output, "output", "o", "", "File to write. It must not exist. Default: gather-NAMESPACE-CLUSTER-TIME.tar.gz")
	flags.DurationVar(&f.since, "since", 24*time.Hour, "Age of the oldest line of the logs of managers")
	flags.Int64Var(&f.logBytes, "log-bytes", 5<<20, "Length of each log. The newest lines are kept")
	flags.DurationVar(&f.timeout, "timeout", 10*time.Minute, "Time for requests and the unpacking of logs. What is not read by then is listed")
	flags.BoolVar(&f.service, "assisted-service", true,
		"Read events and host logs of assisted-service, at the addresses that the objects name")
	flags.StringVar(&f.serviceCA, "assisted-service-ca", "",
		"File with certificate authorities of assisted-service, in PEM. Added to those of the system")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return p.gather(cmd.Context(), args[0], &f)
	}
	return cmd
}

// gather writes the archive of a cluster.
func (p *plugin) gather(ctx context.Context, cluster string, f *gatherFlags) error {
	if f.timeout <= 0 || f.since < 0 || f.logBytes <= 0 || f.logBytes > maxLogBytes {
		return fmt.Errorf("--timeout must be positive, --since not negative, and --log-bytes between 1 and %d", maxLogBytes)
	}
	h, err := p.connect()
	if err != nil {
		return err
	}
	s := gather.Sources{API: h, Logs: h.logs}
	if f.service {
		if s.Service, err = serviceClient(f.serviceCA, h.local); err != nil {
			return err
		}
	}
	now := p.clock.Now()
	if f.output == "" {
		f.output = "gather-" + h.namespace + "-" + cluster + "-" + now.UTC().Format("20060102-150405") + ".tar.gz"
	}
	gaps, err := gather.Write(ctx, s, gather.Options{
		Namespace: h.namespace, Cluster: cluster, Output: f.output, Since: f.since, LogBytes: f.logBytes, Timeout: f.timeout, Version: version,
		Time: now, Progress: func(step string) { p.log("reading %s", step) },
	})
	if err != nil {
		return err
	}
	for _, gap := range gaps {
		if gap.Cause == snapshot.NoKind {
			continue // as on a hub without OpenShift. The archive lists the kind
		}
		p.log("not readable: %s (%s)", gap.What, gap.Cause)
	}
	_, err = fmt.Fprintln(p.streams.Out, f.output)
	return err
}

// serviceClient returns a client for assisted-service, which trusts the authorities of the system and those of a file. Only
// for a local hub it connects to loopback addresses.
func serviceClient(file string, local bool) (*http.Client, error) {
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if file != "" {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("cannot read --assisted-service-ca: %w", err)
		}
		if !pool.AppendCertsFromPEM(content) {
			return nil, errors.New("the file of --assisted-service-ca contains no certificate in PEM")
		}
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	transport.MaxResponseHeaderBytes = bound.HeaderBytes
	transport.DialContext = (&dial.Dialer{Refuse: refuse(local), Proxy: transport.Proxy, Timeout: connectTimeout}).DialContext
	return &http.Client{Transport: transport}, nil
}

// refuse returns which addresses of assisted-service are refused: objects name them, and other users may write these objects.
// Behind link-local addresses, clouds serve credentials of the user's machine. Loopback addresses lead to servers of the
// user, unless the hub runs on the same machine.
func refuse(local bool) func(netip.Addr) error {
	return func(ip netip.Addr) error {
		switch {
		case ip.IsLinkLocalUnicast() || ip.IsMulticast():
			return errors.New("link-local and multicast addresses are refused")
		case dial.IsLoopback(ip) && !local:
			return errors.New("loopback addresses are refused, because the hub runs on another machine")
		}
		return nil
	}
}

// isLocal reports whether the API server has a loopback address, as in a hub on the machine of the user.
func isLocal(config *rest.Config) bool {
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(server.Hostname())
	return server.Hostname() == "localhost" || err == nil && dial.IsLoopback(ip.Unmap())
}

// logs opens the log of a container.
func (h *hub) logs(ctx context.Context, namespace, pod string, options *corev1.PodLogOptions) (io.ReadCloser, error) {
	return h.pods.Pods(namespace).GetLogs(pod, options).Stream(ctx)
}
