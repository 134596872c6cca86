# Random expressions of the supported language and Ruby's answers: a line each, the expression, a tab and the answer.
#
#     ruby generate.rb PAGE SEED COUNT
#
# PAGE is docs/query.md, whose list of methods names what is drawn. An answer is JSON of the value's `inspect`, or `error` and
# the class.
require "json"
require "time"
require "timeout"
Warning[:deprecated] = false
$VERBOSE = nil

# As Ruby 3.4 writes it.
class Hash
  def inspect
    "{" + map { |k, v| (k.is_a?(Symbol) ? (k.inspect =~ /\A:"?[A-Za-z_"].*[^=]\z|\A:[A-Za-z_]\z/ ? "#{k.inspect[1..]}: " : "\"#{k}\": ") : "#{k.inspect} => ") + v.inspect }.join(", ") + "}"
  end
  alias to_s inspect
end

# Differences between versions of Ruby, as the latest has them, and those that docs/query.md lists.
class Float
  alias modulo_of_any %
  alias ceil_of_any ceil
  def ceil(digits = 0) = digits.is_a?(Integer) && digits < 0 ? ceil_of_any(0).ceil(digits) : ceil_of_any(digits)
  def %(other) = other.is_a?(Numeric) && other == 0 ? NAN : modulo_of_any(other)
end
class Integer
  alias modulo_of_any %
  def %(other) = other.is_a?(Float) && other == 0 ? Float::NAN : modulo_of_any(other)
  alias ceil_of_any ceil
  def ceil(digits = 0) = digits.is_a?(Integer) && digits < 0 && self % 10**-digits == 0 ? self : ceil_of_any(digits)
  alias bit []
  def [](place) = bit(Integer(place))
end
class MatchData
  alias at []
  def [](place) = at(place)
end
class Range
  alias size_of_any size
  def size = self.begin.is_a?(Integer) || self.begin.is_a?(String) || self.begin.is_a?(Symbol) ? size_of_any : raise(TypeError)
  alias last_of_any last
  def last(*count) = count.first.is_a?(Integer) && count.first < 0 ? raise(ArgumentError) : last_of_any(*count)
end
module Enumerable
  alias chunks chunk_while
  def chunk_while(&block) = chunks(&block).to_a
  alias slices slice_when
  def slice_when(&block) = slices(&block).to_a
end
class Array
  def chunk_while(&block) = chunks(&block).to_a
  def slice_when(&block) = slices(&block).to_a
end

# Draws expressions, apart from the objects that they use.
module Draw
extend self

METHODS = File.read(ARGV[0])[/```methods\n(.*?)```/m, 1].gsub("\n  ", " ").lines.to_h do |line|
  name, list = line.chomp.split(": ", 2)
  [name, list.split(" ")]
end
RANDOM = Random.new(ARGV[1].to_i)
def one(list) = list[RANDOM.rand(list.size)]
def chance(share) = RANDOM.rand < share
def some(range) = Array.new(RANDOM.rand(range)) { yield }

SMALL = %w[0 1 2 3 4 -1 -2 5 7 -3]
INTEGERS = SMALL + %w[10 15 25 -35 250 97 255 -13 1000 12345 2147483648 9007199254740993 4611686018427387904 9223372036854775807
  9223372036854775808 -9223372036854775808 18446744073709551616 -100000000000000000001 1700000000]
FLOATS = %w[0.0 -0.0 0.5 25.0 -350.0 250.5 0.125 1.0 1.5 -2.5 0.1 2.675 1e20 1e-7 1e16 9.99e15 123456.789 1e100 1e-100 1e22 -1e-5 3.0 100.0
  (0.0/0.0) (1.0/0.0) (-1.0/0.0)]
STRINGS = ['""', '"a"', '"b"', '"abc"', '"Hello World"', '" \tpad \n"', '"a,b,,c,,"', '"é"', '"日本語"', '"ß"', '"ÀÉi"', '"12abc"',
  '"0x1F"', '"-3.5e2x"', '"1_000"', '"a\nb\r\nc"', '"az"', '"Zz"', '"a9"', '"aaa"', '"AbC"', '"a-b_c"', '"GET /x?y=1 HTTP/1.1"',
  '"a1b22c333"', '"  "', '"3"', '" 42 "', '"1.50"', '"\\\\"', '"\u0000x"', '"-"', '"zz99"', '"foo.bar"', '"a\tb"', '"🙂x"', '"#{1}"']
SYMBOLS = %w[:a :b :abc :B :"" :"a-b" :to_s :x? :nil]
PATTERNS = %w[/a/ /b+/ /(a)(b)?/ /\d+/ /[a-c]/ /\s*/ /x*/ // /^/ /$/ /(?<n>\w)/ /\w+/ /./ /[^a]/i /a|b/ /\b/ /(\d)(\d)/ /,/ /é/
  /\p{L}/ /[[:alpha:]]+/ /(?:l)+/ /\A\s+/ /B/i /.\z/m /(?=b)/ /(?<!a)b/ /[\u3000-\u9fff]/ /\p{Word}/ /(.)\1/]
TIMES = ['Time.at(0).utc', 'Time.at(1700000000).utc', 'Time.at(1700000000.5).utc', 'Time.at(1, 500, :millisecond).utc',
  'Time.new(2024, 2, 29, 12, 30, 45, "+09:00")', 'Time.utc(2023, 12, 31, 23, 59, 59.75)', 'Time.at(-1).utc', 'Time.utc(2000)']
BLOCKS = ['{ |x| x }', '{ |x| x.to_s }', '{ |a, b| a }', '{ |a, b| b }', '{ |*a| a }', '{ |a, *b| b }', '{ |(a, b), c| [a, b, c] }',
  '{ _1 }', '{ [_1, _2] }', '{ |x| x.nil? }', '{ |x| x.to_s > "2" }', '{ |a, b| [b, a] }', '{ |a, b| a.to_s <=> b.to_s }',
  '{ |x| next 7 if x == 1; x }', '{ |x| break 9 if x == 2; x }', '(&:to_s)', '(&:nil?)', '(&->(x) { x.to_s.length })',
  '{ |x| [x, x.to_s] }', '{ |k, v| [v, k] }', '{ |a, b| (a.to_s + b.to_s).length }', '{ |x| x.is_a?(Array) ? x : [x] }', '{ 1 }',
  '{ |x, i| i }', '{ |a,| a }', '{ nil }', '{ |a, b = 5| [a, b] }', '{ |x| x.class }', '{ |x| x == 1 }', '{ |a, b| b <=> a }',
  '{ |a, (b, *c), d| [a, b, c, d] }', '{ |x| x.to_s.to_i }', '{ |x| -x }', '{ |a, b| a + b }', '{ |x| x % 2 }',
  '(&:first)', '(&:last)', '(&:to_a)', '(&:length)', '{ |x| x > 1 }', '{ |x| false }', '{ |x| x && 3.5 }']
WRITTEN = BLOCKS.grep(/\A\{/)
COMPARING = ['{ |a, b| b <=> a }', '{ |a, b| a.to_s <=> b.to_s }', '{ |a, b| nil }', '{ |a, b| (a <=> b) * 2.5 }']

def integer = chance(0.6) ? one(SMALL) : one(INTEGERS)
def float = chance(0.9) ? one(FLOATS) : [RANDOM.bytes(8).unpack1("D")].map { |it| it.finite? && it.abs > 1e-100 ? it.to_s : "1.25" }.first
def number = chance(0.6) ? integer : float
def string = one(STRINGS)
def scalar = send(one(%i[integer integer float string string symbol nothing]))
def symbol = one(SYMBOLS)
def nothing = one(%w[nil nil true false])
def pattern = one(PATTERNS)
def time = one(TIMES)
def block = one(WRITTEN)
def key = chance(0.7) ? one(['"a"', '"b"', '"x"', ':a', '1', '2', 'nil']) : scalar
# Of equal keys in a literal, the place depends on Ruby's version.
def hash = "{ " + some(0..4) { key }.uniq.map { |it| "#{it} => #{value(1)}" }.join(", ") + " }"
def pairs = "[" + some(0..4) { "[#{key}, #{scalar}]" }.join(", ") + "]"
def array(depth = 1)
  element = one([-> { integer }, -> { one(SMALL) }, -> { number }, -> { string }, -> { scalar }, -> { value(depth - 1) }])
  element = -> { "[" + some(0..3) { one(SMALL) }.join(", ") + "]" } if chance(0.15)
  chance(0.15) ? pairs : "[" + some(0..5, &element).join(", ") + "]"
end
def range
  one([-> { "(#{one(SMALL)}#{one(%w[.. ...])}#{integer_end})" }, -> { "(#{one(SMALL)}..#{one(%w[2.5 4.0 3 6])})" },
    -> { one(['("a".."e")', '("a"..."d")', '("y".."ab")', '(1.0..2.0)', '(0.5...3)', '(..3)', '(nil..nil)', '("08".."11")', '(:a..:c)']) }]).call
end
def integer_end = one(%w[3 5 0 1 6 -1 10])
def enumerator
  one([-> { "#{array}.each" }, -> { "#{array}.each_with_index" }, -> { "#{hash}.each" }, -> { "#{hash}.each_with_index" },
    -> { "#{array}.map" }, -> { "#{array}.each_slice(2)" }, -> { "#{array}.each_cons(2)" }, -> { "#{string}.each_char" },
    -> { "#{one(SMALL)}.step(#{one(%w[9 5 -4])}, #{one(%w[1 2 3 -1 0.5])})" }, -> { "#{array}.each.with_index(1)" },
    -> { "#{one(SMALL)}.times" }, -> { "#{array}.each_with_object([])" }, -> { "#{array}.select" }, -> { "#{range}.each_slice(2)" },
    -> { "(1..9).step(#{one(%w[2 3 4])})" }, -> { "(1..9) % 3" }, -> { "#{array}.reverse_each" }, -> { "#{array}.map.with_index" },
    -> { "#{string}.each_line" }, -> { "#{hash}.map.with_index(1)" }, -> { "#{array}.each_with_index.map" }]).call
end
def match = "#{string}.match(#{pattern})"
def function = one(['->(x) { x }', '->(x, y = 2) { [x, y] }', 'proc { |a, b| [a, b] }', ':to_s.to_proc', '->(*a) { a }',
  'proc { |x| x.to_s }', '->(x, k: 1) { [x, k] }'])
def value(depth = 2)
  return scalar if depth < 1 || chance(0.3)
  send(one(%i[array array hash range scalar time]))
end
RECEIVERS = { "Integer" => :integer, "Float" => :float, "String" => :string, "Symbol" => :symbol, "Array" => :array, "Hash" => :hash,
  "Range" => :range, "Enumerator" => :enumerator, "Regexp" => :pattern, "MatchData" => :match, "Time" => :time, "Proc" => :function,
  "NilClass" => :nothing }
CLASSES = RECEIVERS.keys.flat_map { |it| [it] * ({ "String" => 5, "Array" => 6, "Hash" => 4, "Enumerator" => 4, "Range" => 3, "Integer" => 3, "Float" => 3, "Time" => 2 }[it] || 1) }

# What stands between the parentheses, by method; `nil` where it takes nothing.
def small = one(SMALL)
def width = one(%w[0 1 3 5 8 12 -2])
def text_or_pattern = chance(0.5) ? string : pattern
ARGUMENTS = {
  "% * + - / ** & | ^ < <= > >= << <=> == != === =~ !~" => nil,
  "between? clamp" => -> { chance(0.2) ? "(#{range})" : "(#{number}, #{number})" },
  "ceil floor round truncate" => -> { one(["", "(#{small})", "(#{one(%w[1 2 -1 -2 15 20 -4])})", "(half: #{one(%w[:even :up :down nil])})", "(1, half: :even)"]) },
  "round" => -> { one(["", "", "(#{small})", "(#{one(%w[1 2 -1 -2 15 20 -4])})", "(half: #{one(%w[:even :up :down nil])})", "(#{one(%w[1 2 -1])}, half: #{one(%w[:even :up :down])})"]) },
  "divmod fdiv" => -> { "(#{number})" },
  "downto upto" => -> { "(#{small})" }, "step" => -> { one(["(#{small}, #{one(%w[1 2 -1 3 0.5])})", "(#{one(%w[2 3 1.5])})", "(by: #{one(%w[1 2 -1])}, to: #{small})"]) },
  "chr" => -> { "" }, "to_s inspect" => -> { chance(0.8) ? "" : "(#{one(%w[2 16 36 1 10])})" },
  "to_i" => -> { chance(0.6) ? "" : "(#{one(%w[0 2 8 16 36 1])})" },
  "center ljust rjust" => -> { chance(0.5) ? "(#{width})" : "(#{width}, #{string})" },
  "casecmp? include? delete_prefix delete_suffix" => -> { "(#{chance(0.9) ? string : scalar})" },
  "start_with?" => -> { "(#{some(0..3) { text_or_pattern }.join(', ')})" }, "end_with?" => -> { "(#{some(0..3) { string }.join(', ')})" },
  "chomp" => -> { chance(0.6) ? "" : "(#{string})" },
  "count delete squeeze" => -> { "(#{some(1..2) { chance(0.5) ? string : one(['"a-c"', '"^a"', '"^a-z"', '"l"', '"a\\-b"', '"\\\\^a"', '"0-9"', '"é"', '"c-a"', '"-"', '"^"']) }.join(', ')})" },
  "tr" => -> { "(#{one(['"a-c"', '"^a"', '"l"', '"a-y"', '"^a-z"', '"-"', '"é"', '"ab"', '""', '"\\\\-a"', '"c-a"'])}, #{one(['"A-C"', '"*"', '""', '"xy"', '"b-z"', '"é"', '"^"', '"1-3"'])})" },
  "gsub sub" => -> { one(["(#{text_or_pattern}, #{one(['"-"', '""', '"[\\\\0]"', '"<\\\\1>"', "'\\k<n>'", "'\\\\&'", "'\\`|'", '"日"', '{ "a" => 1, "b" => "x" }', '"\\\\\\\\"'])})", "(#{text_or_pattern}) { |m| m.upcase }", "(#{pattern}) { $1.to_s + $~[0] }", "(#{pattern}) { |m| $`.length }"]) },
  "index rindex" => -> { chance(0.6) ? "(#{text_or_pattern})" : "(#{text_or_pattern}, #{small})" },
  "match match?" => -> { chance(0.8) ? "(#{text_or_pattern})" : "(#{text_or_pattern}, #{small})" },
  "partition rpartition" => -> { "(#{text_or_pattern})" }, "scan" => -> { "(#{text_or_pattern})" + (chance(0.2) ? " #{block}" : "") },
  "split" => -> { one(["", "(#{text_or_pattern})", "(#{text_or_pattern}, #{small})", "(#{one(['","', '" "', '"a"', '""', 'nil'])})", '(/(,)|b/)'] ) },
  "lines each_line" => -> { chance(0.7) ? "" : one(['("a")', '(chomp: true)', '("")', '("a", chomp: true)']) },
  "[] slice" => -> { one(["(#{small})", "(#{small}, #{small})", "(#{small}..#{small})", "(#{small}...#{small})", "(#{small}..)", "(..#{small})", "(#{text_or_pattern})", "(#{pattern}, 1)", "(#{pattern}, #{one(['"n"', ':n', '0', '2'])})", "(#{key})", "(#{value})"]) },
  "concat" => nil,
  "at take drop pop shift first last" => -> { "(#{small})" }, "first last pop shift max min" => -> { chance(0.6) ? "" : "(#{small})" },
  "fetch" => -> { one(["(#{small})", "(#{key})", "(#{key}, 7)", "(#{small}) { |k| [k] }", "(#{key}) { |k| k }"]) },
  "dig" => -> { "(#{some(1..3) { chance(0.5) ? small : key }.join(', ')})" },
  "values_at fetch_values except" => -> { "(#{some(0..3) { chance(0.5) ? small : key }.join(', ')})" }, "values_at" => -> { one(["(#{some(0..3) { small }.join(', ')})", "(#{small}..#{small})", "(#{key}, #{key})"]) },
  "each_slice each_cons" => -> { "(#{one(%w[1 2 3 0 -1 10])})" }, "each_with_object" => -> { one(["([]) { |x, m| m << x }", "({}) { |(a, b), m| m[a] = b }", "(#{value(1)}) #{block}"]) },
  "flatten" => -> { one(["", "(1)", "(0)", "(-1)", "(#{small})"]) }, "join" => -> { one(["", '("-")', "(#{string})", "(nil)"]) },
  "inject reduce" => -> { one(["(:+)", "(#{scalar}, :+)", "{ |a, b| a }", "{ |a, b| b }", "{ |a, b| a + b }", "(#{number}) { |a, b| a * b }", "(:*)", "([]) { |a, b| a + [b] }", "(:max)", "(&:+)", "([]) { |a, (b, c)| a << c }"]) },
  "grep grep_v" => -> { "(#{one(['1..3', 'String', 'Integer', '/a/', 'nil', ':nil?.to_proc', '2', 'Numeric', '->(x) { x }', 'Array'])})" + (chance(0.3) ? " #{block}" : "") },
  "all? any? none? one?" => -> { one(["", block, "(#{one(['1..3', 'String', '/a/', 'nil', '2', 'Numeric'])})"]) },
  "sum" => -> { one(["", "", "(#{number})", block, '("")', "([])", "(0.0) #{block}"]) },
  "zip" => -> { "(#{some(0..2) { chance(0.8) ? array : range }.join(', ')})" }, "union merge merge!" => -> { "(#{some(0..2) { array }.join(', ')})" },
  "merge merge!" => -> { one(["(#{hash})", "(#{hash}) { |k, a, b| [a, b] }", "()", "(#{hash}, #{hash})"]) },
  "push unshift" => -> { "(#{some(0..2) { value(1) }.join(', ')})" }, "[]=" => -> { one(["(#{small}, #{scalar})", "(#{small}, #{small}, #{value(1)})", "(#{key}, #{value(1)})", "(#{small}..#{small}, #{value(1)})"]) },
  "find_index index" => -> { chance(0.5) ? "(#{scalar})" : block }, "count" => -> { one(["", "(#{scalar})", block]) },
  "include? has_key? key? key value? delete" => -> { "(#{chance(0.5) ? key : scalar})" },
  "each_with_index" => -> { chance(0.5) ? "" : block }, "with_index" => -> { chance(0.5) ? block : "(1) #{block}" },
  "transform_keys" => -> { one([block, "({ \"a\" => 9 })", "({ \"a\" => :b, 1 => 2 }) #{block}", "(&:to_s)"]) },
  "to_h" => -> { one(["", block, "{ |a, b| [b, a] }", "{ |x| [x, 1] }", "{ |k, v| [k.to_s, v] }"]) },
  "cover?" => -> { "(#{chance(0.5) ? scalar : range})" }, "captures length named_captures post_match pre_match source" => -> { "" },
  "begin end" => -> { chance(0.4) ? "" : "(#{one(%w[0 1 2 5 :n "n" "z"])})" },
  "strftime" => -> { "(#{one(['"%Y-%m-%d %H:%M:%S"', '"%j %U %W %u %w %a %A %b %B"', '"%-d %e %_5d %05d %^a %#b"', '"%L %N %3N %6N %9N %12N"', '"%z %:z %::z %Z"', '"%s %Q"', '"%y %C %G %V %g"', '"%I %l %p %P %M"', '"%D %F %T %R %r %c %x %X"', '"%% %n%t|"', '"%10Y|%-m|%_H|%^B|%010d"', '"%v %h"', '"%k %-I %-S"', '"%E %i"'])})" },
  "iso8601" => -> { one(["", "(3)", "(0)", "(#{small})"]) }, "getlocal" => -> { one(['("+09:00")', "(3600)", '("-01:30")']) },
  "call" => -> { "(#{some(0..2) { value(1) }.join(', ')})" }, "is_a?" => -> { "(#{one(%w[Integer Numeric String Comparable Enumerable Hash Object NilClass Float])})" },
  "respond_to?" => -> { "(#{one(%w[:to_s :each :map :nope :length :upcase])})" }, "method" => -> { "(:class).call" },
  "send public_send" => -> { "(#{one(%w[:to_s :inspect :length :first :class])})" }, "then tap" => -> { block },
  "clone" => -> { "" }, "getbyte" => nil,
}
SPECIFIC = ARGUMENTS.each_with_object({}) { |(names, it), all| names.split.each { |name| (all[name] ||= []) << it if it } }
TAKES_BLOCK = %w[map collect flat_map select filter reject filter_map drop_while take_while group_by partition each each_with_index reverse_each sort_by
  min_by max_by minmax_by find detect find_index uniq chunk_while slice_when sort min max minmax each_key each_value each_pair transform_values each_char times upto downto step
  each_slice each_cons zip index rindex to_h tally]
NO_ARGUMENTS = %w[min max minmax sort uniq tally compact reverse transpose keys values invert length size empty? to_a to_f to_sym bytes chars upcase downcase capitalize
  strip lstrip rstrip next succ ord hex even? odd? abs zero? positive? negative? finite? infinite? nan? times itself dup freeze frozen? nil? class hash
  utc usec nsec year month day hour min sec wday yday zone utc? utc_offset each_key each_value each_pair transform_values map collect flat_map select filter reject filter_map
  drop_while take_while group_by partition each reverse_each sort_by min_by max_by minmax_by find detect chunk_while slice_when each_char bytesize swapcase name to_proc to_json]
BINARY = %w[% & * + - / < << <= <=> == === =~ != !~ > >= ** ^ |]

def operand(name, klass)
  return one(SMALL) if %w[<< ** *].include?(name) && %w[Integer Float String Array].include?(klass) && chance(0.9)
  return one(%w[0 1 2 0.5 1.5]) if name == "**"
  return one(["0.5", "-1.25", "60", "1e3", string, time]) if klass == "Time"
  return array if klass == "String" && name == "%" && chance(0.5)
  chance(0.6) ? send(RECEIVERS[klass]) : value(1)
end

def call(receiver, klass, name)
  return "#{receiver} #{name} #{operand(name, klass)}" if BINARY.include?(name)
  return "#{name[0]}#{receiver}" if %w[! ~ +@ -@].include?(name) && !(name == "!" && klass == "Range")
  argument = SPECIFIC[name] && !(klass == "Time" && name == "min") ? one(SPECIFIC[name]).call : NO_ARGUMENTS.include?(name) || chance(0.8) ? "" : "(#{value(1)})"
  if TAKES_BLOCK.include?(name) && !argument.include?("{ |") && chance(0.75)
    it = one(BLOCKS)
    it = one(COMPARING) if %w[sort min max minmax].include?(name)
    argument = it.start_with?("(") && argument.end_with?(")") ? "#{argument[0..-2]}#{", " if argument.size > 2}#{it[1..]}" : "#{argument}#{it.start_with?("(") ? it : " " + it}" unless argument.start_with?("{", "(&")
  end
  argument = " #{argument}" if argument.start_with?("{")
  return "#{receiver}[#{argument[1..-2]}]" if name == "[]" && argument.start_with?("(") && argument.end_with?(")")
  return "#{receiver}.send(:[]=, #{argument[1..]}" if name == "[]="
  "#{receiver}.#{name}#{argument}"
end

def names(klass) = METHODS[klass] && (chance(0.92) ? METHODS[klass] : METHODS["Every value"])
def step
  klass = one(CLASSES)
  receiver = send(RECEIVERS[klass])
  name = one(names(klass))
  receiver = "(#{receiver})" if receiver.match?(/\A-|\A->| /) && !receiver.match?(/\A[\[{("]/)
  if %w[concat push unshift pop shift delete << []= merge! squeeze].include?(name) && chance(0.8)
    return "r = #{receiver}; #{klass == 'String' ? 'r = +r; ' : ''}v = #{name == '<<' ? "(r << #{operand('<<', klass)})" : call('r', klass, name)}; [r, v]"
  end
  call(receiver, klass, name)
end

AGAIN = METHODS["Array"] - %w[* << []= concat push unshift]
def chain
  first = step
  return first if first.start_with?("r =")
  name = one(chance(0.8) ? AGAIN : METHODS[one(%w[Hash String Enumerator])] - %w[* << []= ** concat ljust rjust center])
  call("(#{first})", "Array", name)
end

FLAGS = ["", "-", "+", "0", " ", "#", "-+", "+0", "0 "]
def conversion = "%#{one(FLAGS)}#{one(['', '1', '5', '12', '3'])}#{one(['', '', '.0', '.1', '.3', '.10'])}#{one(%w[d d i f f g e s s x o b X G E c % p u B])}"
def format_text
  pieces = some(1..3) { one([-> { conversion }, -> { "a" }, -> { one(['%<a>d', '%{b}', '%<b>5.1f', '%1$s', '%-+5d|']) }, -> { conversion }]).call }
  arguments = some(1..4) { chance(0.75) ? number : scalar }
  arguments = ["{ a: #{number}, b: #{number} }"] if pieces.any? { |it| it.match?(/%[<{]/) }
  "format(\"#{pieces.join.gsub('#{', '{')}\", #{arguments.join(', ')})"
end
ATOMS = ["a", "b", "\\d", "\\w", "\\s", ".", "[a-c]", "[^a]", "(a|b)", "(b)", "(?:ab)", "^", "$", "\\b", "[[:digit:]]", "é", ",", "\\S", "(?i:A)", "[a-z&&[^b]]", "\\h", "(?<x>a)", "\\.", "\\R", "\\A", "\\z", "(?=a)", "(?!b)", "(?>a+)", "\\p{Lu}", "\\D"]
def expression
  some(1..4) { one(ATOMS) + (chance(0.3) ? one(%w[* + ? *? +? {1,2} {2} ?? ++ {,2}]) : "") }.join.gsub(/(\\b|\^|\$|\\A|\\z|\(\?[=!][ab]\))[*+?{][^)]*?\}?\??/) { $1 }
end
def searching
  text = one(['"abcab"', '"a1b22 c,d"', '"ABba.b"', '"é,aé b"', '"\na\nb"', '""', string])
  pattern = "/#{expression}/"
  pattern += one(['', '', '', 'i', 'm', 'x']) unless pattern.include?("\\p")
  one(["#{text}.scan(#{pattern})", "#{text}.gsub(#{pattern}, #{one(['"-"', '"<\\\\0>"', '"\\\\1"'])})", "#{text}.split(#{pattern}#{one(['', ', -1', ', 2'])})", "#{text} =~ #{pattern}", "#{text}[#{pattern}]", "#{text}.match(#{pattern}).to_a",
    "#{text}.sub(#{pattern}) { |m| \"[\#{m}]\" }", "#{text}.index(#{pattern}, 1)", "#{text}.rindex(#{pattern})", "#{text}.partition(#{pattern})", "#{text}.rpartition(#{pattern})", "(#{text} =~ #{pattern}; [$~ && $~.pre_match, $1, $'])", "case #{text} when #{pattern} then $~[0] else 0 end"])
end
def arithmetic
  "(#{number} #{one(%w[+ - * / % <=> < == >])} #{number}) #{one(%w[+ - * / % & | ^ <=> < == >= ** .divmod .fdiv])} (#{number})".sub("** ", "** 2 * ")
end
def converting
  one([-> { "Integer(#{value(1)})" }, -> { "Float(#{value(1)})" }, -> { "String(#{value})" }, -> { "Array(#{value})" }, -> { "Integer(#{string}, #{one(%w[2 8 10 16 0])})" }, -> { "JSON.generate(#{value})" }, -> { "#{value}.to_json" }, -> { "\"\#{#{value}}\"" },
    -> { "Integer(#{string}, exception: false)" }, -> { "JSON.parse(#{one(['"[1, 2.0, null]"', '"{\"a\": {\"b\": []}}"', '"1e3"', '"-0"', '"[1,]"', '"\"x\""', '""', '"1.5"'])})" }, -> { "#{string}.to_i" }, -> { "#{string}.to_f" }, -> { "#{number}.to_s" }, -> { "Math.#{one(%w[sqrt log log2 log10 sin cos exp])}(#{one(%w[0 1 2 10 100 0.5 1e10 -1])})" }]).call
end
def control
  one([-> { "x = #{value}; case x when #{one(%w[Integer String 1..3 nil Array /a/])} then 1 when Hash, Float then 2 else x end" }, -> { "a, (b, *c), d = #{array(2)}; [a, b, c, d]" }, -> { "a, *b, c = #{value}; [a, b, c]" }, -> { "x = nil; x ||= #{value}; x &&= x.to_s; x" },
    -> { "(#{value} if #{scalar}) || #{value}" }, -> { "#{value}&.#{one(%w[to_s length first class])}" }, -> { "begin; r = (#{step}); r.is_a?(Enumerator) ? r.to_a : r; rescue TypeError, ArgumentError => e; e.class; ensure; 1; end" }, -> { "h = Hash.new { |h, k| h[k] = [k] }; h[#{scalar}]; h[#{scalar}]; h" }, -> { "h = Hash.new(#{scalar}); #{array}.each { |x| h[x] = h[x].to_s + '1' }; h" },
    -> { "[*#{value}, *#{value}]" }, -> { "{ zz: 1, **#{hash} }" }, -> { "#{value} == #{value}" }, -> { "#{value} <=> #{value}" }, -> { "[#{scalar}, #{scalar}].uniq" }, -> { "(#{range}) === #{scalar}" }, -> { "#{array(2)} <=> #{array(2)}" }, -> { "#{array}.sort_by { |x| [x.to_s.length, x.to_s] }" },
    -> { "#{function}.call(#{some(0..3) { value(1) }.join(', ')})" }, -> { "#{array}.each_slice(2).#{one(%w[map to_a flat_map])} #{block}" }, -> { "#{array}.each_with_index.#{one(%w[map select sort_by group_by max_by to_h flat_map reject])} #{block}" }, -> { "#{time} #{one(%w[+ - <=> ==])} #{chance(0.5) ? one(%w[0.5 -1.25 60 1e3]) : time}" },
    -> { "Time.at(#{one(INTEGERS)}).utc" }, -> { "Time.parse(#{one(['"2024-02-29 01:02:03 UTC"', '"2024-03-01T00:00:00.123Z"', '"2024-03-01T10:00:00+09:00"', '"Thu, 29 Feb 2024 01:02:03 GMT"'])})" },
    -> { "i = 0; r = []; while i < 5; i += 1; next if i == #{one(SMALL)}; break if i == #{one(SMALL)}; r << i; end; r" }, -> { "#{array}.each_with_object(Hash.new(0)) { |x, h| h[x] += 1 }" }]).call
end

def draw
  case RANDOM.rand(20)
  when 0..8 then step
  when 9..12 then chain
  when 13 then format_text
  when 14, 15 then searching
  when 16 then arithmetic
  when 17 then converting
  else control
  end
end

end

ARGV[2].to_i.times do
  expression = "r = (#{Draw.draw}); r = r.to_a if r.is_a?(Enumerator); r.inspect"
  answer = begin
    Timeout.timeout(2) { eval("proc { |_|\n#{expression}\n}").call(nil) }
  rescue Timeout::Error
    next
  rescue SyntaxError, StandardError, SystemStackError, NoMemoryError => e
    # A later Ruby takes the first character of a longer text. What cannot be copied there is itself here.
    next if e.message.match?(/\A%c requires a character|\Aallocator undefined/)

    "error #{e.class}"
  end
  # Addresses, texts of US-ASCII and long ones are left out.
  next if answer.include?("0x0") || answer.include?("#<") || answer.match?(/\\x/) || answer.size > 2000

  puts "#{expression}\t#{answer.start_with?("error ") ? answer : JSON.generate(answer)}"
end
