//! A few lines of every format, for tests.

use super::Format;

pub const TWITTER: &str = "\
0,nz:u:eeW511W3dcH3de3d15ec,22,304,17,get,0
1,nz:u:a,b,8,129,17,set,86400
1,nz:u:counter,12,8,4,incr,0
2,nz:u:a,b,8,0,17,delete,0
";

pub const ROCKSDB: &str = "\
0x6B657931 1 0 100 1573000000000001
0x6B657931 0 0 0 1573000000000002
0x6B657931 0 2 0 1573000000000003
0x6B6579 6 0 0 1573000000000004
4 0 0 1573000000000005 0x6B6579
0x6B657931 2 0 0 1573000000000006
";

pub const YCSB: &str = "\
***************** properties *****************
INSERT usertable user1 [ field0=a=b ]cd field1=1234 ]
READ usertable user1 [ <all fields>]
UPDATE usertable user1 [ field1=567 ]
SCAN usertable user1 25 [ <all fields>]
DELETE usertable user1
[OVERALL], RunTime(ms), 12
";

pub const REDIS: &str = "\
OK
1339518083.107412 [0 127.0.0.1:60866] \"SET\" \"key\" \"value\"
1339518083.107413 [0 lua] \"mset\" \"a\\n\\x01\" \"1\" \"b\" \"22\"
1339518084.000001 [0 unix:/tmp/redis.sock] \"mget\" \"key\" \"b\"
1339518085.2 [0 [::1]:60866] \"hset\" \"user\" \"name\" \"Eve\"
1339518086.0 [1 127.0.0.1:60866] \"lpush\" \"queue\" \"work\"
1339518087.0 [0 127.0.0.1:60866] \"del\" \"key\" \"b\"
";

pub const SHINGLE: &str = "\
# shingle trace 1: time_ns, kind, key, bytes of the value or records
10\tput\tapple\t100
20\tget\tapple\t100
30\tscan\ta\\tb\t12
-\tdelete\tapple\t-
";

pub const ALL: [(Format, &str); 5] = [
    (Format::Twitter, TWITTER),
    (Format::RocksDb, ROCKSDB),
    (Format::Ycsb, YCSB),
    (Format::Redis, REDIS),
    (Format::Shingle, SHINGLE),
];
