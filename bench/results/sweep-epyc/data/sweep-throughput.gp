set encoding utf8
set terminal pngcairo noenhanced size 1200,720
set output 'sweep-throughput.png'
set title 'Throughput over concurrency'
set xlabel 'concurrency'
set ylabel 'throughput (requests/s)'
set xrange [0:*]
set yrange [0:*]
set grid
set samples 200
set key above
plot 'sweep-throughput-worker.dat' using 1:2 with points pointtype 2 linecolor rgb '#d55e00' title 'Regent worker', \
     'sweep-throughput-worker.dat' using 1:2 smooth bezier with lines linewidth 2 linecolor rgb '#d55e00' notitle, \
     'sweep-throughput-classic.dat' using 1:2 with points pointtype 2 linecolor rgb '#0072b2' title 'Regent classic', \
     'sweep-throughput-classic.dat' using 1:2 smooth bezier with lines linewidth 2 linecolor rgb '#0072b2' notitle, \
     'sweep-throughput-native.dat' using 1:2 with points pointtype 2 linecolor rgb '#7b3fb0' title 'Regent native', \
     'sweep-throughput-native.dat' using 1:2 smooth bezier with lines linewidth 2 linecolor rgb '#7b3fb0' notitle, \
     'sweep-throughput-native-inline.dat' using 1:2 with points pointtype 2 linecolor rgb '#3f51c9' dashtype (10,3,2,3) title 'Regent native, inline', \
     'sweep-throughput-native-inline.dat' using 1:2 smooth bezier with lines linewidth 2 linecolor rgb '#3f51c9' dashtype (10,3,2,3) notitle, \
     'sweep-throughput-respond.dat' using 1:2 with points pointtype 2 linecolor rgb '#007f8c' dashtype (10,3,2,3,2,3) title 'Regent without PHP', \
     'sweep-throughput-respond.dat' using 1:2 smooth bezier with lines linewidth 2 linecolor rgb '#007f8c' dashtype (10,3,2,3,2,3) notitle, \
     'sweep-throughput-fpm.dat' using 1:2 with points pointtype 2 linecolor rgb '#00865f' title 'nginx + php-fpm', \
     'sweep-throughput-fpm.dat' using 1:2 smooth bezier with lines linewidth 2 linecolor rgb '#00865f' notitle, \
     'sweep-throughput-apache.dat' using 1:2 with points pointtype 2 linecolor rgb '#c0508c' title 'Apache + mod_php', \
     'sweep-throughput-apache.dat' using 1:2 smooth bezier with lines linewidth 2 linecolor rgb '#c0508c' notitle
