package provider

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
)

// An API server may be unavailable for a minute during its upgrade. The leader keeps its lease, as OpenShift
// requires of operators.
func TestLeaderSurvivesAnUpgradeOfTheAPIServer(t *testing.T) {
	g := NewWithT(t)
	o := &Options{}
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.AddFlags(fs)
	g.Expect(o.Parse(fs, nil, t.Output())).To(Succeed())
	g.Expect([]time.Duration{o.LeaseDuration, o.RenewDeadline, o.RetryPeriod}).
		To(Equal([]time.Duration{137 * time.Second, 107 * time.Second, 26 * time.Second}))
}
