// Package provider holds what the managers of both providers share: flags, and the set-up of the manager.
package provider

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/component-base/logs"
	logsv1 "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register" // for --logging-format=json
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/diagnostics"
)

// Options are the flags of a manager.
type Options struct {
	// Namespace restricts the manager to one namespace; all namespaces if empty.
	Namespace string
	// WatchFilter restricts the manager to objects whose label cluster.x-k8s.io/watch-filter has this value;
	// all objects if empty.
	WatchFilter string
	// Concurrency is the number of objects of a kind that are reconciled at a time.
	Concurrency int
	// SyncPeriod is how often all objects are reconciled without a change.
	SyncPeriod time.Duration
	// QPS and Burst limit the requests to the API server.
	QPS   float32
	Burst int
	// LeaderElect enables leader election among several managers.
	LeaderElect bool
	// LeaseDuration, RenewDeadline and RetryPeriod are the times of the leader election.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
	// HealthAddress serves /healthz and /readyz.
	HealthAddress string
	// Version prints the version and ends the program.
	Version bool
	// Diagnostics holds the flags of metrics, profiles and TLS.
	Diagnostics diagnostics.Options

	logs *logs.Options
}

// AddFlags adds the flags to the set.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	o.logs = logs.NewOptions()
	logsv1.AddFlags(o.logs, fs)
	fs.StringVar(&o.Namespace, "namespace", "", "Namespace that the manager watches. All namespaces when empty.")
	fs.StringVar(
		&o.WatchFilter,
		"watch-filter",
		"",
		"Value of the label cluster.x-k8s.io/watch-filter of the objects that the manager reconciles. All objects when empty.",
	)
	fs.IntVar(&o.Concurrency, "concurrency", 50, "Number of objects of a kind that are reconciled at the same time.")
	fs.DurationVar(&o.SyncPeriod, "sync-period", 10*time.Hour, "Interval at which all objects are reconciled even without a change.")
	fs.Float32Var(&o.QPS, "kube-api-qps", 100, "Sustained number of requests to the API server per second.")
	fs.IntVar(&o.Burst, "kube-api-burst", 200, "Number of requests to the API server in a burst.")
	fs.BoolVar(&o.LeaderElect, "leader-elect", false, "Enable leader election: only one of several managers is active.")
	// The defaults are those that OpenShift requires of operators (library-go, pkg/config/leaderelection). They
	// survive an API server that is unavailable for a minute during its upgrade.
	fs.DurationVar(
		&o.LeaseDuration,
		"leader-elect-lease-duration",
		137*time.Second,
		"Time that other managers wait before they replace a leader that does not renew its lease.",
	)
	fs.DurationVar(
		&o.RenewDeadline,
		"leader-elect-renew-deadline",
		107*time.Second,
		"Time for which the leader tries to renew its lease before it gives up the leadership.",
	)
	fs.DurationVar(&o.RetryPeriod, "leader-elect-retry-period", 26*time.Second, "Time between attempts to acquire or renew the lease.")
	fs.StringVar(&o.HealthAddress, "health-addr", ":9440", "Address that serves /healthz and /readyz.")
	fs.BoolVar(&o.Version, "version", false, "Print the version and exit.")
	o.Diagnostics.AddFlags(fs)
}

// ErrPrinted reports that the requested help or version is printed, and the program has nothing else to do.
var ErrPrinted = errors.New("printed the requested help or version")

// Parse reads the flags, including those of [Options.AddFlags], and checks them.
func (o *Options) Parse(fs *pflag.FlagSet, args []string, out io.Writer) error {
	switch err := fs.Parse(args); {
	case errors.Is(err, pflag.ErrHelp):
		return ErrPrinted
	case err != nil:
		return fmt.Errorf("cannot read the flags: %w", err)
	case o.Version:
		return errors.Join(ErrPrinted, printVersion(out, fs.Name()))
	}
	return o.Validate()
}

// Validate checks the flags and configures logging.
func (o *Options) Validate() error {
	if o.Concurrency < 1 {
		return fmt.Errorf("--concurrency must be at least 1, not %d", o.Concurrency)
	}
	if err := logsv1.ValidateAndApply(o.logs, nil); err != nil {
		return fmt.Errorf("logging flags: %w", err)
	}
	return nil
}

// reconciliationTimeout ends a reconcile that hangs, so that its worker serves other objects. A request to the hub has no
// limit of its own: a connection can be lost without an error. Other calls end after one minute at most. One reconcile
// makes few of them.
const reconciliationTimeout = 5 * time.Minute

// ControllerOptions returns the options of a controller. Its queue is that of controller-runtime. It has priorities (see
// ResultAfter of pkg/reconcile), and a rate limit by object: one failing object does not delay others.
func (o *Options) ControllerOptions() controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: o.Concurrency, ReconciliationTimeout: reconciliationTimeout,
	}
}
