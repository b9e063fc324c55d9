package docs

import (
	"testing"

	. "github.com/onsi/gomega"
)

const example = "# The `Title`, of a_b: (what?)\n\n[a link](other.md#x) and ![a picture](p.svg), not `[this](one.md)`, nor\n\n" +
	"```yaml\n[nor](this.md)\n```\n\n## Same\n\n## Same\n\n| Table |\n| --- |\n| [in it](table.md) |\n\n" +
	"- item\n\n  <!-- needs a hub -->\n  ```console\n  oc get nodes\n  ```\n\n```console\nmake demo\n```\n"

func TestADocumentIsReadAsGitHubReadsIt(t *testing.T) {
	g := NewWithT(t)
	d := Parse("docs/example.md", []byte(example))
	g.Expect(d.Links()).To(ConsistOf("other.md#x", "p.svg", "table.md"))
	g.Expect(d.Anchors()).To(Equal([]string{"the-title-of-a_b-what", "same", "same-1"}))
	g.Expect(d.Spans()).To(ConsistOf("Title", "[this](one.md)"))
	g.Expect(d.Blocks("console")).To(Equal([]Block{
		{Language: "console", Line: 20, Text: "oc get nodes\n", Remark: "needs a hub"},
		{Language: "console", Line: 24, Text: "make demo\n"},
	}))
}
