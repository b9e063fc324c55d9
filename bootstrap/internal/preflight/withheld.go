package preflight

import (
	"fmt"

	"k8s.io/apimachinery/pkg/labels"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/desired"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// Withheld returns why no bootstrap data may be handed out, as reason and message of a condition; empty if it
// may. After that CAPM3 gives the Machine any possible host. The Bare Metal Operator then starts the server,
// or writes its disk if writesDisk is true, before an Agent can show which server it is. Therefore one wrong
// host is enough to withhold the data.
func Withheld(f *facts.Facts, writesDisk bool) (reason, message string) {
	if f.DataHandedOut() || !f.HasBareMetalHost() {
		return "", ""
	}
	if f.NeedsHost() {
		// CAPM3 chooses no host until the selector is corrected. It then chooses at once, which is too late to withhold the data.
		if _, err := metal3.HostSelector(f.InfraMachine); err != nil {
			return bootstrapv1.InvalidConfigurationReason, fmt.Sprintf(
				"Bootstrap data withheld: the host selector of %s %s is invalid, so that the hosts that Metal3 could choose are unknown: %s. "+
					"Correct spec.hostSelector",
				f.InfraMachine.GetKind(),
				f.InfraMachine.GetName(),
				bound.Shorten(err.Error(), maxDetail),
			)
		}
	}
	var used, wrong []string
	for _, host := range Candidates(f) {
		if claims := f.Claims(host); len(claims) > 0 {
			used = append(used, detailed(host, bound.List(claims), len(used) == 0))
		}
		if reason := metal3.WrongBMC(host); reason != "" && writesDisk {
			wrong = append(wrong, detailed(host, reason, len(wrong) == 0))
		}
	}
	const exclude = "To use other hosts, exclude this one: set the annotation capm3.metal3.io/unhealthy on it, or a label that " +
		"spec.hostSelector does not match"
	switch {
	case len(used) > 0:
		return bootstrapv1.ServerInUseReason, fmt.Sprintf(
			"Bootstrap data withheld: Metal3 would start a server that is in use. %s. %s. %s",
			bound.List(used),
			desired.KeepOneHost,
			exclude,
		)
	case len(wrong) > 0:
		return bootstrapv1.BMCOfAnotherServerReason, fmt.Sprintf("Bootstrap data withheld: Metal3 would write the disk of another server. %s. "+
			"Create the BareMetalHost again with the right address. To delete the wrong one, %s. %s",
			bound.List(wrong), desired.DetachFirst, exclude)
	}
	return "", ""
}

// maxDetail is the length in bytes of the detail about the first of several hosts in a message.
const maxDetail = 320

// detailed returns the name of a host, and for the first host also the reason.
func detailed(host *metal3.Host, why string, first bool) string {
	name := "BareMetalHost " + host.Namespace + "/" + host.Name
	if !first {
		return name
	}
	return name + " (" + bound.Shorten(why, maxDetail) + ")"
}

// Candidates returns the host of the Machine, or else the hosts that CAPM3 may give to it, now or later,
// sorted by name. They include hosts of other failure domains and hosts that are not reserved for the
// Machine: CAPM3 takes them when the others are taken.
func Candidates(f *facts.Facts) []*metal3.Host {
	if f.Host != nil {
		return []*metal3.Host{f.Host}
	}
	selector, err := metal3.HostSelector(f.InfraMachine)
	if err != nil || !f.NeedsHost() {
		return nil
	}
	reuse := metal3.NodeReuseName(f.InfraMachine)
	var hosts []*metal3.Host
	for _, host := range f.Hosts {
		if metal3.MayBeChosen(host, reuse) && selector.Matches(labels.Set(host.Labels)) {
			hosts = append(hosts, host)
		}
	}
	return hosts
}
