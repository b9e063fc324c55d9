package preflight

import (
	"strings"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/desired"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/hostrole"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3/choice"
)

// mismatch returns why a host does not fit the Machine; "" if it fits. from is the pool from which CAPM3
// chooses.
func mismatch(f *facts.Facts, host *metal3.Host, from *choice.Pool) string {
	if reason := from.Excludes(host); reason != "" {
		return assisted.RedactURLs(reason)
	}
	return unsuitable(f, host)
}

// unsuitable returns why a host would be discovered but not bound, or why its installation would probably fail. CAPM3
// does not check these reasons. It returns "" if there is none.
func unsuitable(f *facts.Facts, host *metal3.Host) string {
	if claims := f.Claims(host); len(claims) > 0 {
		return bound.Cause(strings.Join(claims, "; "))
	}
	if reason := choice.Unsuitable(host, f.Config.Spec.HostRequirements); reason != "" {
		return bound.Cause(reason)
	}
	if reason := desired.HostnameProblem(f, host); reason != "" {
		return assisted.RedactURLs(reason)
	}
	if !hostrole.Fenced(f) {
		return ""
	}
	if err := desired.FencingProblem(host); err != nil {
		return assisted.RedactURLs(err.Error())
	}
	return ""
}
