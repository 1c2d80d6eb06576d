package diag

// Code names a message for good. A code is never used for something else; one that
// is no longer needed stays here, marked so. docs/messages.md explains each.
type Code string

// The project file and its rules.
const (
	ProjectMissing     Code = "K0001" // no kiln.toml here or above
	ProjectSyntax      Code = "K0002" // not TOML
	UnknownKey         Code = "K0003"
	WrongType          Code = "K0004"
	BadValue           Code = "K0005"
	UnknownProcessor   Code = "K0006"
	BadGlob            Code = "K0007"
	RuleMatchesNothing Code = "K0008"
	DuplicateName      Code = "K0009"
	RootMissing        Code = "K0010"
	UnknownPlatform    Code = "K0011"
	MissingKey         Code = "K0012"
)

// Source files.
const (
	CaseCollision    Code = "K0101" // two names that differ only in case
	LFSPointer       Code = "K0102" // a Git LFS pointer where content should be
	EmptyFile        Code = "K0103"
	SymlinkLoop      Code = "K0104"
	SymlinkEscapes   Code = "K0105" // leads out of the source roots
	SourceUnreadable Code = "K0106"
	NameNotUTF8      Code = "K0107"
	NameNotPortable  Code = "K0108" // Windows cannot have it
	SourceChanged    Code = "K0109" // while it was read
	NotARegularFile  Code = "K0110"
	DuplicateAssetID Code = "K0111"
	IgnoreTooLarge   Code = "K0112" // an ignore file that is not read
	NameOfFolder     Code = "K0113" // a file of one root, a folder in another
	LinkLeaves       Code = "K0114" // Kiln would write through a link that leads out of the project
	FolderForeign    Code = "K0115" // an output folder that Kiln did not make
)

// Building.
const (
	JobFailed        Code = "K0201" // a processor returned an error without a code
	NeedsFailed      Code = "K0202" // needs an asset that failed
	Cycle            Code = "K0203"
	OutputClash      Code = "K0204" // two jobs write one file
	ProcessorPanic   Code = "K0205"
	ReadRefused      Code = "K0206" // out of the source roots
	SourceMissing    Code = "K0207" // a job needs a source file that is not there
	AssetMissing     Code = "K0208" // a job names an asset that is not there
	ProductClash     Code = "K0209" // one job writes a product twice
	OutputUnwritable Code = "K0210" // read-only, full, in the way
	StateDamaged     Code = "K0211" // set aside, rebuilt
	BlobDamaged      Code = "K0212" // made again
	PatternNoMatch   Code = "K0213" // on the command line
	ProjectBusy      Code = "K0214" // another kiln holds the lock
	ToolMissing      Code = "K0215"
	QueryFailed      Code = "K0216"
	StateGone        Code = "K0260" // removed while a build was under way
	ProductWrong     Code = "K0220" // an output is not what it was
	SourceMissed     Code = "K0221" // a change that stat did not show
	ListNotEnough    Code = "K0222" // of changed files: everything was looked at
	WatchPolls       Code = "K0223" // the system does not report changes
	PlaceholderMade  Code = "K0224" // stands for the products of what failed
	CopiedAsIs       Code = "K0225" // a source format that nothing processes
	AtlasForeign     Code = "K0226" // a source format in the folder of an atlas
	RuleTwice        Code = "K0227" // two rules for one path
	SettingIdle      Code = "K0228" // a setting that repeats the default, or that never counts
	CacheFails       Code = "K0229" // a shared cache could not be used
	CacheWrong       Code = "K0230" // what says where results are shared cannot be
	FarmFails        Code = "K0231" // a server that runs jobs could not be used
	FarmWrong        Code = "K0232" // what says where jobs run cannot be
	FarmOther        Code = "K0233" // the workers of a farm run another Kiln
	ProductMissing   Code = "K0234" // a product refers to one that its asset does not make
	CacheUnsigned    Code = "K0237" // nothing is stored, because there is no trusted key
	KeyExists        Code = "K0238" // a file that a new key would replace
	Internal         Code = "K0299"
)

// External commands (K1501..K1549).
const (
	CommandTemplate      Code = "K1501" // a placeholder that is not known, or a brace too many
	CommandConfig        Code = "K1502" // something else in the declaration that cannot be
	CommandStart         Code = "K1503" // the program is there but does not start
	CommandFailed        Code = "K1504" // it ended with an exit code other than 0
	CommandReported      Code = "K1505" // a line with a position that it printed
	CommandTimeout       Code = "K1506"
	CommandOutputMissing Code = "K1507"
	CommandOutputKind    Code = "K1508" // a link or a folder where a file should be
	CommandStderr        Code = "K1509" // it succeeded and wrote to standard error
	CommandUndeclared    Code = "K1510" // it read a source file that `inputs` does not name
	CommandDepfile       Code = "K1511" // missing, too large or not a depfile
	CommandView          Code = "K1512" // the input view cannot be laid out
	CommandChanged       Code = "K1513" // what it read changed while it ran
	CommandUntraced      Code = "K1514" // this system cannot show what it reads
	CommandUnsealed      Code = "K1515" // this system does not refuse it anything
	CommandTooMuch       Code = "K1516" // a program that a processor ran wrote more than that can be given
	CommandReadsBuilt    Code = "K1540" // it read what Kiln made, by its path
)

// Atlases (K1301..K1349).
const (
	AtlasEmpty       Code = "K1301" // a folder without images
	AtlasNames       Code = "K1302" // two images that would be one frame
	AtlasImageTooBig Code = "K1303" // larger than a page
	AtlasPattern     Code = "K1304" // include or exclude is not a glob, or leads out of the folder
	AtlasTable       Code = "K1305" // more pages or frames than the format has numbers for, or a name it cannot hold
	AtlasTooMuch     Code = "K1306" // more pixels than one job should hold
	AtlasPatch       Code = "K1307" // guide lines of a nine-patch that are none
	AtlasPackFile    Code = "K1308" // a pack.json that cannot be read, or says what cannot be
	AtlasPackSetting Code = "K1309" // a setting of libGDX that is not understood
	AtlasSheet       Code = "K1310" // a sheet smaller than one of its frames
	AtlasCrowded     Code = "K1311" // what must lie on one page does not fit there
	AtlasSetting     Code = "K1312" // settings that are none, or cannot be together
	AtlasPlain       Code = "K1313" // a plain image beside a nine-patch of its name
	AtlasExport      Code = "K1314" // a name or a place for which an export has no words
	AtlasNoSprites   Code = "K1315" // the parcel of an atlas holds no image for it
	AtlasNotHeld     Code = "K1316" // the parcel of an atlas holds images for it, and not the atlas
)

// Images and textures (K1201..K1249).
const (
	ImageEmpty       Code = "K1201"
	ImageUnknown     Code = "K1202" // not an image of a known format
	ImageTruncated   Code = "K1203"
	ImageDamaged     Code = "K1204"
	ImageUnsupported Code = "K1205" // a right image of a kind that cannot be read
	ImageTooLarge    Code = "K1206" // claims more than the limit
	ImageMisnamed    Code = "K1207" // its extension says another format than its content
	TextureSettings  Code = "K1208" // a setting has no effect beside another

	TextureSource      Code = "K1209" // a picture that a setting names is not there, or cannot be named so
	TextureShape       Code = "K1210" // pictures that do not fit together to a cube, an array, a volume
	TextureCombination Code = "K1211" // settings that cannot be together
	TextureOddSize     Code = "K1212" // not a multiple of 4, with a format that some hardware wants that for
	TextureAlpha       Code = "K1213" // a format without alpha for a picture with it
	TextureGuess       Code = "K1214" // named like a normal map or a mask, but does not look like one
	TextureSpace       Code = "K1216" // colours that are not those of sRGB
	TexturePrecision   Code = "K1217" // numbers of data that a format rounds
	ImageFixed         Code = "K1230" // damaged where it can be read all the same
	TextureForeign     Code = "K1231" // a texture file that goes out as it is, unread
)

// The content database.
const (
	ContentDBMissing  Code = "K0217" // no build has finished yet
	ContentDBUnusable Code = "K0218" // damaged, of another version, not to be read
	QueryStopped      Code = "K0219" // took longer than it was given
)

// Data (K1101..K1149).
const (
	DataSyntax           Code = "K1101" // not in its format
	DataRelaxedJSON      Code = "K1102" // JSON with comments, trailing commas or keys without quotes
	DataDuplicateKey     Code = "K1103"
	DataEncoding         Code = "K1104" // not UTF-8
	DataLimit            Code = "K1105" // too large, too deep, too many values
	DataNumber           Code = "K1106" // infinite, or an integer beyond 64 bits
	DataUnsupported      Code = "K1107" // YAML beyond the core schema
	DataRagged           Code = "K1108" // a CSV row longer or shorter than the header
	DataInput            Code = "K1109" // an extension that names no format
	DataSchemaMissing    Code = "K1110"
	DataSchemaInvalid    Code = "K1111"
	DataSchemaRemote     Code = "K1112" // a schema or a $ref that is no relative path
	DataInvalid          Code = "K1113" // breaks its schema
	DataReferenceMissing Code = "K1114" // names an asset that is not there
	DataReference        Code = "K1115" // cannot be an asset's name
	DataEmpty            Code = "K1116" // a table without rows
)

// More of the project file and its rules (K0013..K0029).
const (
	FoldersOverlap    Code = "K0013" // source roots in each other, in the output or in .kiln
	ProcessorMismatch Code = "K0014" // a folder's processor for a file, or the other way round
	ExtensionClash    Code = "K0015" // two processors claim an extension, and nothing says which has it
	OwnKilnNoGo       Code = "K0016" // no Go to compile the project's own kiln with
	OwnKilnBuild      Code = "K0017" // the project's own kiln does not compile
	ProcessorsGone    Code = "K0018" // the last build had processors of a team's own kiln that this one has not
	NameOfRequest     Code = "K0019" // a file has the name that a rule may have meant a request by
	GameNotStarted    Code = "K0020" // by [run]
	VersionRequired   Code = "K0021" // [project] requires another Kiln
	RuleOverridden    Code = "K0022" // a rule for one path says what a later pattern replaces
)

// Models (K1401..K1449).
const (
	ModelSyntax       Code = "K1401" // not JSON
	ModelContainer    Code = "K1402" // a damaged .glb
	ModelTooBig       Code = "K1403" // over a limit
	ModelVersion      Code = "K1404" // not glTF 2.x
	ModelProperty     Code = "K1405" // missing, or of a wrong type or value
	ModelIndex        Code = "K1406" // of a thing that does not exist
	ModelBounds       Code = "K1407" // a view or an accessor reaches out of its data
	ModelLayout       Code = "K1408" // alignment and stride
	ModelHierarchy    Code = "K1409" // a cycle, a second parent, a scene's node that is not a root
	ModelMesh         Code = "K1410" // attributes, indices, morph targets
	ModelAnimation    Code = "K1411" // animations and skins
	ModelExtension    Code = "K1412" // required and unknown
	ModelDataURI      Code = "K1413" // not decodable
	ModelURI          Code = "K1414" // refused: absolute, remote, out of the source roots
	ModelFileMissing  Code = "K1415" // a buffer or an image that is not there
	ModelImageUse     Code = "K1416" // one image as colour and as data
	ModelImageAsset   Code = "K1417" // an image that is not an asset, or makes no product
	ModelMoreProblems Code = "K1418" // more than are shown
	ModelNotFinite    Code = "K1419" // NaN, infinite, or too large for a float
	ModelImageSpace   Code = "K1430" // an image file's texture is sRGB where a material wants measures, or the other way round
)

// Setting up and looking after a project (K0240..K0259).
const (
	SetupFolder      Code = "K0240" // the folder to set up is not there, or is none
	ProjectExists    Code = "K0241" // kiln.toml is there already
	FileCutShort     Code = "K0242" // its end is missing
	FileTemporary    Code = "K0243" // a name that programs give to files they have not finished
	FileZeros        Code = "K0244" // nothing but zero bytes
	PathTooLong      Code = "K0245" // for Windows, or for a file system
	FolderUnwritable Code = "K0246" // the output, or Kiln's own
	DiskLow          Code = "K0247"
	LimitLow         Code = "K0248" // of open files, of watched folders
	NothingKnown     Code = "K0249" // of what was asked for: no asset, file or key
	OutputStranger   Code = "K0250" // in the output, made by nothing that is known
	OutputForeign    Code = "K0251" // in the output, and not Kiln's
)

// Scripts (K1450..K1469).
const (
	ScriptSyntax      Code = "K1450" // not Starlark, or an unknown name
	ScriptLoad        Code = "K1451" // a script or a module that is missing, out of the project, in a ring, too large
	ScriptDeclaration Code = "K1452" // processor() and process(job)
	ScriptError       Code = "K1453" // while it ran
	ScriptFailed      Code = "K1454" // what the script says is wrong with a source file
	ScriptWarning     Code = "K1455" // what the script warns of
	ScriptPrint       Code = "K1456"
	ScriptLimit       Code = "K1457" // steps, memory, the size of a value
	ScriptTime        Code = "K1458"
)

// Processors in WebAssembly (K1550..K1569).
const (
	WasmModule    Code = "K1550" // no module, or one that cannot be a processor
	WasmImport    Code = "K1551" // it imports what a processor cannot have
	WasmInfo      Code = "K1552" // it describes itself wrongly
	WasmGoMissing Code = "K1553" // no Go toolchain to compile it with
	WasmGoBuild   Code = "K1554" // the Go toolchain could not compile it
	WasmTrap      Code = "K1555" // it crashed or ended itself
	WasmTimeout   Code = "K1556"
	WasmMemory    Code = "K1557" // it crashed with no memory left
	WasmAbuse     Code = "K1558" // a call that breaks the interface's rules: a bad pointer, a closed handle
	WasmFailed    Code = "K1559" // it says that the job failed, and not why
)

// Resource ids (K0270..K0279).
const (
	IDsSyntax   Code = "K0270" // a line of kiln.ids that is none
	IDsConflict Code = "K0271" // two lines for one number or one resource
	IDsChange   Code = "K0272" // with --locked: kiln.ids is not what it should be
	IDsUnbuilt  Code = "K0273" // assets whose products are not known
	IDsLost     Code = "K0254" // kiln.ids was missing
	OtherKiln   Code = "K0256" // results of another version of Kiln are used again
	IDsRenamed  Code = "K0255" // a file looks renamed, and its resources are new ones
)

// What is kept, and what a job may say (K0274..K0279).
const (
	BlobLost      Code = "K0274" // made anew of the output, or its job runs again
	NameRefused   Code = "K0275" // of a product, or of what a job asks for: it has a zero byte in it
	TraceTooLarge Code = "K0276" // a job looked at more than can be kept
	WatchedStages Code = "K0277" // a build beside a watcher with other stages
	ConstantsLeft Code = "K0279" // what a failed asset requires is not known
	ShippedWrong  Code = "K0278" // verify: kiln.ids, a parcel or constants are not those of the products
)

// Parcels (K1601..K1619).
const (
	ParcelDamaged Code = "K1601" // no parcel, or not what its hashes say
	PatchWrong    Code = "K1602" // damaged, or for another parcel
	ParcelLacks   Code = "K1603" // it requires something that cannot be had
	ParcelHeld    Code = "K1604" // it shares content with one that lacks something
	ParcelBudget  Code = "K1605" // larger than it should be
	ParcelWrite   Code = "K1606" // it could not be written
	OrderWrong    Code = "K1607" // a line of a load order that is none, or no such file
	OrderGone     Code = "K1608" // a line of a load order that means no resource
	ReleaseWrong  Code = "K1609" // no manifest of a release

	ConstantsWrong    Code = "K1610" // a template that does not work
	ConstantsInTheWay Code = "K1611" // a file that Kiln did not write stands where they belong

	SignatureWrong Code = "K1612" // none, or by another key
	KeyWrong       Code = "K1613" // no key, another password, or no signature

	ParcelPlaceholders Code = "K1614" // it was not packed, and the one that is there has placeholders in it
)

// Sounds (K1701..K1719).
const (
	SoundUnreadable Code = "K1701" // damaged, empty, or of a format that is not read
	SoundDamaged    Code = "K1702" // read as far as it goes
	SoundMisnamed   Code = "K1703" // another format than its name says
	SoundUnmeasured Code = "K1704" // handed on, but its samples cannot be read
	SoundAsItIs     Code = "K1705" // settings that do nothing, since it is handed on
	SoundLoop       Code = "K1706" // a loop that cannot be, or does nothing
	SoundLimit      Code = "K1707" // more than a format or Kiln takes
	SoundClipped    Code = "K1708" // samples beyond full scale, or that are no numbers
	SoundEncoder    Code = "K1709" // no program that encodes Opus or Vorbis is installed
	SoundEncoded    Code = "K1710" // what such a program made is not the sound that it was given
)
