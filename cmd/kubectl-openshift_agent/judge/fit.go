package judge

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/snapshot"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3/choice"
)

// Fit is which BareMetalHosts a Machine may get.
type Fit struct {
	Machine Object `json:"machine"`
	// Fitting are the names of the BareMetalHosts that Metal3 may choose and that show no problem.
	Fitting []string `json:"fitting,omitempty"`
	// Others are the other BareMetalHosts of the namespace.
	Others []Mismatch `json:"others,omitempty"`
	// Problem is why Metal3 chooses no host at all.
	Problem string `json:"problem,omitempty"`
	// Reported is what the provider reports. The provider knows more than the BareMetalHosts show: hosts of other
	// namespaces, older Machines that need the same hosts, names and networks.
	Reported *Reported `json:"reported,omitempty"`
}

// Mismatch is why a BareMetalHost does not fit a Machine.
type Mismatch struct {
	Host   string `json:"host"`
	Reason string `json:"reason"`
}

// Reported is the condition HostAvailable of an OpenshiftAssistedConfig.
type Reported struct {
	Available bool   `json:"available"`
	Reason    string `json:"reason"`
	Message   string `json:"message,omitempty"`
}

// HasHost reports whether a host fits and the provider reports no problem.
func (f *Fit) HasHost() bool {
	return len(f.Fitting) > 0 && f.Problem == "" && (f.Reported == nil || f.Reported.Available)
}

// Fits returns for each Machine that waits which BareMetalHosts fit, by the rules of the providers.
func Fits(i *snapshot.Inventory) []Fit {
	hosts := make([]*metal3.Host, 0, len(i.Hosts))
	for n := range i.Hosts {
		hosts = append(hosts, &i.Hosts[n])
	}
	slices.SortFunc(hosts, func(a, b *metal3.Host) int { return cmp.Compare(a.Name, b.Name) })
	claims := make([]string, len(hosts)) // the same for each Machine
	for n, host := range hosts {
		claims[n] = claimed(host, hosts)
	}
	fits := []Fit{}
	for _, w := range i.Waiting() {
		fits = append(fits, fitOf(&w, hosts, claims))
	}
	return fits
}

// fitOf returns which hosts a Machine may get. claims are the claims on the servers of the hosts.
func fitOf(w *snapshot.Waiting, hosts []*metal3.Host, claims []string) Fit {
	f := Fit{Machine: Object{Kind: snapshot.KindMachine, Namespace: w.Namespace, Name: w.Name}}
	var wanted *bootstrapv1.HostRequirements
	if w.Config != nil {
		wanted = w.Config.Spec.HostRequirements
		if c := meta.FindStatusCondition(w.Config.Status.Conditions, bootstrapv1.HostAvailableCondition); c != nil {
			f.Reported = &Reported{Available: !Unmet(c), Reason: c.Reason, Message: c.Message}
		}
	}
	pool, err := choice.PoolOf(w.InfraMachine, hosts)
	if err != nil {
		f.Problem = "Metal3 chooses no host until " + err.Error() + " is corrected"
		return f
	}
	f.Problem = assisted.RedactURLs(pool.Expected())
	for n, host := range hosts {
		if reason := cmp.Or(pool.Excludes(host), claims[n], choice.Unsuitable(host, wanted)); reason != "" {
			f.Others = append(f.Others, Mismatch{Host: host.Name, Reason: assisted.RedactURLs(reason)})
		} else {
			f.Fitting = append(f.Fitting, host.Name)
		}
	}
	return f
}

// claimed returns which other host of the namespace shows that the server of a host is in use; "" if none does.
func claimed(host *metal3.Host, hosts []*metal3.Host) string {
	for _, other := range hosts {
		if other == host {
			continue
		}
		if claim := metal3.ClaimedBy(host, other); claim != "" {
			return claim
		}
	}
	return ""
}
