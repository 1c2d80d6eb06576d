package codegen

import "strings"

// language is how names are written in a language.
type language struct {
	name, extension string
	file            func(pkg string) string     // name of the file for a package
	pkg             func(words []string) string // how packages, parcels and constants are written
	parcel          func(words []string) string
	constant        func(words []string) string
	// Constants of all parcels are in one namespace, with the parcel's name as prefix.
	flat     bool
	prefixed func(pkg, parcel string, words []string) string // for flat ones
	reserved string                                          // words that cannot be names, or would hide what the template uses
	types    string                                          // words that cannot be names of parcels if constants are flat
	members  []string                                        // names that a parcel's type already has
	escape   *strings.Replacer                               // for comments; nil: they end with their line
}

func (l *language) packageName(pkg string) string {
	if pkg == "" {
		pkg = "kiln"
	}
	return newScope(l.reserved).name(l.pkg(words(pkg)))
}

func (l *language) comment(s string) string {
	if l.escape == nil {
		return s
	}
	return l.escape.Replace(s)
}

func same(s string) string { return s }

// block prevents a comment from ending early.
var block = strings.NewReplacer("*/", "* /", "/*", "/ *")

var languages = []language{
	{
		name: "go", extension: ".go", file: same, pkg: lower, parcel: pascal, constant: pascal, flat: true,
		prefixed: func(_, parcel string, w []string) string {
			name := pascal(w)
			if isDigit(parcel[len(parcel)-1]) && isDigit(name[0]) {
				name = "_" + name
			}
			return parcel + name
		},
		// Names of parcels begin with a capital letter; names of packages do not.
		reserved: "break default func interface select case defer go map struct chan else goto package switch const fallthrough if range type " +
			"continue for import return var main init ID",
	},
	{
		// Not PACKAGE.h, because kiln.h reads parcels.
		name: "c", extension: ".h", file: func(pkg string) string { return pkg + "_ids" }, pkg: lower, parcel: lower, constant: upper, flat: true,
		prefixed: func(pkg, parcel string, w []string) string { return strings.ToUpper(pkg+"_"+parcel) + "_" + upper(w) },
		reserved: cWords + " " + runtimeNames, types: runtimeTypes, escape: block,
	},
	{name: "cpp", extension: ".hpp", file: same, pkg: lower, parcel: lower, constant: pascal, reserved: cWords + " " + cppWords,
		// With -trigraphs, ??/ at the end of a line would join it with the next one.
		escape: strings.NewReplacer("??/", "?? /")},
	{
		name: "csharp", extension: ".cs", file: same, pkg: pascal, parcel: pascal, constant: pascal,
		members: []string{"Equals", "Finalize", "GetHashCode", "GetType", "MemberwiseClone", "ReferenceEquals", "ToString"},
		escape:  strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;"),
	},
	{
		name: "rust", extension: ".rs", file: same, pkg: lower, parcel: lower, constant: upper,
		reserved: "as break const continue crate else enum extern false fn for if impl in let loop match mod move mut pub ref return self static struct " +
			"super trait true type unsafe use where while async await dyn abstract become box do final macro override priv typeof unsized virtual yield try gen u32",
	},
	{
		name: "typescript", extension: ".ts", file: same, pkg: lower, parcel: pascal, constant: pascal, escape: block,
		reserved: "Infinity NaN",
	},
	{
		name: "haxe", extension: ".hx", file: same, pkg: pascal, parcel: pascal, constant: upper, escape: block,
		reserved: "Any Array Bool Class Date Dynamic EReg Enum EnumValue Float Int IntIterator Iterable Iterator Lambda List Map Math Null Reflect Single Std String " +
			"StringBuf StringTools Sys Type UInt UnicodeString ValueType Void Xml",
	},
	{
		name: "lua", extension: ".lua", file: same, pkg: lower, parcel: lower, constant: upper,
		reserved: "and break do else elseif end false for function goto if in local nil not or repeat return then true until while",
	},
}

// Names that kilnrt/c/kiln.h defines and that constants of a package named kiln could have; and KILN_IDS_H of their own
// file. Types are without "kiln_".
const (
	runtimeNames = "KILN_API KILN_CIRCLE KILN_COMPRESSED KILN_DAMAGED KILN_DICTIONARY KILN_DIRECTORY KILN_FILE KILN_H KILN_IDS KILN_IDS_H KILN_IMPLEMENTATION KILN_IMPLEMENTED " +
		"KILN_LIVE_FREE KILN_LIVE_IMPLEMENTATION KILN_LIVE_IMPLEMENTED KILN_LIVE_REALLOC KILN_MISSING KILN_NAMES KILN_NAMES_TABLE KILN_NEEDS KILN_NOT_FOUND KILN_NOT_PARCEL " +
		"KILN_NO_FILES KILN_OK KILN_ROOM KILN_SECTIONS KILN_SIGNATURE KILN_TYPES KILN_UNPACKING KILN_UNTRUSTED KILN_UUIDS KILN_VERSION"
	runtimeTypes = "ed25519 live live_event live_message live_options live_resource order parcel resource section text unpacker"
)

const cWords = "alignas alignof auto bool break case char const constexpr continue default do double else enum extern false float for goto if inline int long " +
	"nullptr register restrict return short signed sizeof static static_assert struct switch thread_local true typedef typeof union unsigned void volatile while " +
	"asm fortran linux unix"

const cppWords = "and and_eq atomic_cancel atomic_commit atomic_noexcept bitand bitor catch char8_t char16_t char32_t class co_await co_return co_yield compl " +
	"concept const_cast consteval constinit decltype delete dynamic_cast explicit export friend mutable namespace new noexcept not not_eq operator or or_eq " +
	"private protected public reflexpr reinterpret_cast requires static_cast synchronized template this throw try typeid typename using virtual wchar_t xor xor_eq std id"
